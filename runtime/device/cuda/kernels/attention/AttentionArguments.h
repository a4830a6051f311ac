//===- AttentionArguments.h - Declares arguments ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONARGUMENTS_H

#include "runtime/abi/Abi.h"
#include "runtime/abi/DeviceLimits.h"

namespace dyna {
namespace gpu {

/// The keys [begin, end) that a query sees; none: both 0.
struct KeyRange {
  int32_t begin, end;
};

/// The store of a bundle (runtime/abi/Kernels.h), from the columns of this
/// attention on. Keys of slices are numbered after the keys of the micro-batch:
/// key tkv + r is row r of the store. Addresses are those that key 0 would
/// have, so that a row's is found by the number of its key.
struct StoreArguments {
  void *k, *v;
  int64_t stride;
  int32_t rows;       ///< 0: no segment is a slice
  int32_t sumHeadDim; ///< columns of a head in sums
  void *dk, *dv;      ///< sums, f32 or f64; null in forward kernels
  int64_t sumStride;
};

/// Arguments of all kernels of attention; forward ones do not use the second
/// half. Rows are token-major, and strides count elements. tq is below 2^31,
/// and so is tkv with the rows of the store.
struct AttentionArguments {
  const dyna_segment *segments;
  int64_t count;
  int32_t tq, tkv;
  int32_t heads, kvHeads, headDim;
  int32_t causal;
  double scale;
  const void *q, *k, *v;
  void *out;
  void *lse; ///< [tq, heads], may be null in the forward kernel
  int64_t qStride, kStride, vStride, outStride;
  /// All rows of heads begin at multiples of 16 bytes, in every operand.
  int32_t isAligned;

  int32_t group;    ///< heads / kvHeads
  const void *dout; ///< strides as out
  void *dq, *dk, *dv;
  int64_t dqStride, dkStride, dvStride;
  void *delta;      ///< [tq, heads]: sums of out times dout
  KeyRange *ranges; ///< [tq]; of the bf16 kernels

  StoreArguments store;
};

//===----------------------------------------------------------------------===//
// f32 and f64: tiles multiplied element by element
//===----------------------------------------------------------------------===//

constexpr int kFmaThreads = 128;
constexpr int kFmaTile = 32;  ///< queries, and keys
constexpr int kFmaChunk = 32; ///< columns of a head at a time
constexpr int kMaxHeadDim = DYNA_CUDA_HEAD_DIM;

template <typename T> struct FmaShared {
  T rows[kFmaTile][kFmaChunk + 1];
  T columns[kFmaTile][kFmaChunk + 1];
  T weights[kFmaTile][kFmaTile + 1];
  T lse[kFmaTile];
  T delta[kFmaTile];
  KeyRange ranges[kFmaTile];
  int32_t bounds[2 * kFmaThreads];
};
using FmaSharedF32 = FmaShared<float>;
using FmaSharedF64 = FmaShared<double>;

//===----------------------------------------------------------------------===//
// bf16: tiles multiplied by tensor cores
//===----------------------------------------------------------------------===//

constexpr int kMmaThreads = 128;

/// Rows of bf16. Pieces of eight elements lie in an order of the row's own, so that
/// those below each other are in different banks: `pieceOf` of MmaTiles.h.
template <int rows, int width> struct MmaTile {
  alignas(16) uint16_t data[rows][width];
};

/// Rows that a block owns, for heads of up to `width` columns. Each of its four
/// warps has 32 rows if their sums fit into registers, else 16. With 32 it
/// multiplies each value of the other side twice that it reads from shared
/// memory.
template <int width> constexpr int kQueryRows = width <= 128 ? 128 : 64;
template <int width> constexpr int kKeyRows = width <= 128 ? 128 : 64;
/// True if one kernel computes gradients of keys and values; false if each has
/// its own.
template <int width> constexpr bool kJoinsKeyGrads = width <= 64;

/// The keys of a block's queries. They are in shared memory, because registers
/// are needed for sums. The ranges of warps are there only if registers are
/// short (`hasWarps`).
template <int rows, bool hasWarps> struct SeenKeys {
  KeyRange ofRow[rows];
  KeyRange all[kMmaThreads / 32]; ///< keys that every query of the warp sees
  KeyRange any[kMmaThreads / 32]; ///< from the first one sees to the last
};
template <int rows> struct SeenKeys<rows, false> {
  KeyRange ofRow[rows];
};

/// Number of keys that the forward kernel has at a time, and its number of
/// stages: one is loaded while another is read. Blocks of all GPUs have 99 KiB.
template <int width> constexpr int kForwardKeys = width <= 64 ? 64 : 32;
template <int width> constexpr int kForwardStages = width <= 128 ? 2 : 1;

template <int width> struct MmaForwardShared {
  MmaTile<kQueryRows<width>, width> q;
  MmaTile<kForwardKeys<width>, width> k[kForwardStages<width>],
      v[kForwardStages<width>];
  SeenKeys<kQueryRows<width>, (width > 64)> seen;
};
// Two blocks must fit into 100 KiB, the shared memory of GPUs for workstations.
// Each block also reserves 1 KiB.
static_assert(sizeof(MmaForwardShared<64>) <= 49 << 10);

/// Rows of the other side at a time: keys for gradients of queries, queries for
/// gradients of keys.
template <int width>
constexpr int kQueryGradKeys = width <= 64    ? 64
                               : width <= 128 ? 32
                                              : 16;
template <int width> constexpr int kKeyGradQueries = width <= 128 ? 32 : 16;
template <int width> constexpr int kGradStages = width <= 128 ? 2 : 1;

template <int width> struct MmaQueryGradShared {
  MmaTile<kQueryRows<width>, width> q, dout;
  MmaTile<kQueryGradKeys<width>, width> k[kGradStages<width>],
      v[kGradStages<width>];
  SeenKeys<kQueryRows<width>, true> seen;
  float lse[kQueryRows<width>]; ///< in units of log2
  float delta[kQueryRows<width>];
};

/// Own rows of a block of keys. Values are not needed for their own gradient.
template <int width, bool withValues> struct MmaOwnRows {
  MmaTile<kKeyRows<width>, width> k, v;
};
template <int width> struct MmaOwnRows<width, false> {
  MmaTile<kKeyRows<width>, width> k;
};

template <int width, bool withKeys> struct MmaKeysGradShared {
  static constexpr int queries = kKeyGradQueries<width>;
  MmaOwnRows<width, withKeys> own;
  struct Stage {
    MmaTile<queries, width> q, dout;
    float lse[queries]; ///< as above
    float delta[queries];
    KeyRange ranges[queries];
  } stages[kGradStages<width>];
  int32_t bounds[2 * kMmaThreads];
};
/// Shared memory for gradients of keys (with or without values), and of values
/// alone.
template <int width> using MmaKeyGradShared = MmaKeysGradShared<width, true>;
template <int width> using MmaValueGradShared = MmaKeysGradShared<width, false>;

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONARGUMENTS_H
