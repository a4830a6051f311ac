//===- HeadArguments.h - Declares arguments of the head ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_HEADARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_HEADARGUMENTS_H

#include "runtime/device/cuda/kernels/StepArguments.h"

#include <cstdint>

namespace dyna {
namespace gpu {

/// Lists the rows that have a target, ascending, then -1 up to `rows`. One block.
struct HeadListArguments {
  const int32_t *targets;
  int32_t *used;
  int64_t rows;
  int64_t announced; ///< rows with a target; -1: not known
  int32_t ignored;   ///< the target of rows without one
  int32_t reserved;
};
constexpr int kHeadListThreads = 1024;
struct HeadListShared {
  int32_t sums[kHeadListThreads / 32];
};

/// Copies rows of `words` words of `wordBytes` (2, 4, 8 or 16; all addresses are
/// multiples of it): row `used[i]` to row i, or back. Where `used[i]` is -1, zeros
/// to row i, or nothing. A block per row.
struct HeadRowsArguments {
  const void *from;
  void *to;
  const int32_t *used;
  int64_t words;
  int32_t wordBytes;
  int32_t isBack;
};
constexpr int kHeadRowsThreads = 128;

/// Computes the loss of each row of logits, with a block per row. Logits have
/// the compute type, or f32 in `head_loss_wide` under bf16. Row i has the
/// target of row `used[i]`, or of row `first` + i if `used` is null. With
/// target -1 it has no loss and no gradient. losses[i] is its loss. A target
/// outside of `vocab` ends the kernel as failed, and is named in `bad`.
/// `gradient`, unless null, gets the gradient of the loss times `scale` in the
/// compute type. It may be the logits.
struct HeadLossArguments {
  const void *logits;
  void *gradient;
  const int32_t *targets;
  const int32_t *used;
  double *losses;
  int64_t first;
  int64_t stride; ///< elements, of logits and gradient
  int64_t vocab;
  double scale;
  BadRow *bad;
};
constexpr int kHeadLossThreads = 256;
/// Pieces of 16 bytes of a row that stay in shared memory between its two
/// passes. They are 50,560 logits of bf16, because blocks of all GPUs have 99
/// KiB. Further pieces are read twice.
constexpr int kHeadKeptPieces = 6320;
struct HeadLossShared {
  double most[kHeadLossThreads / 32];
  double sums[kHeadLossThreads / 32];
  alignas(16) unsigned char kept[kHeadKeptPieces][16];
};
static_assert(sizeof(HeadLossShared) <= 99 << 10);

/// *sum = the `count` losses, or more by them. One block.
struct HeadSumArguments {
  const double *losses;
  double *sum;
  int64_t count;
  int32_t isFirst;
  int32_t reserved;
};
constexpr int kHeadSumThreads = 128;
struct HeadSumShared {
  double sums[kHeadSumThreads / 32];
};

/// Adds to f32 sums that are stored in two halves. The upper halves are bf16,
/// truncated; the last addition rounds them. The first addition finds no lower
/// halves.
struct HeadSplitArguments {
  const float *source;
  uint16_t *upper, *lower;
  int64_t elements;
  int32_t isFirst, isLast;
};
constexpr int kHeadSplitThreads = 256;
constexpr int kHeadSplitElements = 4; ///< of a thread

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_HEADARGUMENTS_H
