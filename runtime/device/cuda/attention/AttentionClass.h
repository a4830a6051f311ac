//===- AttentionClass.h - Attention that takes one plan ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan of cuDNN's is made for fixed sizes and takes seconds; micro-batches are
// ragged, and nearly each has others. So plans are made for classes: sizes rounded
// up, and what a micro-batch lacks of them is empty segments behind its own.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONCLASS_H
#define DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONCLASS_H

#include "runtime/abi/Kernels.h"
#include "runtime/device/cuda/kernels/attention/AttentionTablesArguments.h"

#include <array>
#include <string>

namespace dyna::cuda {

/// What a plan depends on.
struct AttentionClass {
  bool isGradient = false;
  bool isOrdered = false; ///< a gradient: added up in the same order each time
  bool causal = false;
  int64_t segments = 0; ///< at most; a power of two
  int64_t longest = 0;  ///< tokens of a segment, at most; a power of two
  int64_t tokens = 0;   ///< of all, at most; a fourth of a power of two
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  double scale = 0;
  /// From one row to the next, in elements, in the order of `gpu::AttentionTable`;
  /// those of gradients are 0 without.
  std::array<int64_t, gpu::kAttentionTables> strides = {};

  /// `p` is one that `whyNotPlanned` has nothing against, of at least one segment.
  static AttentionClass of(const dyna_attention &p);
  static AttentionClass of(const dyna_attention_grad &p, bool isOrdered);

  /// Tables that its plans read: those of gradients come last.
  int32_t tables() const {
    return isGradient ? gpu::kAttentionTables : gpu::kAttentionForwardTables;
  }
  /// Where the device has what a call needs beside the plan's own workspace, one
  /// behind the other, each at a multiple of 256 bytes.
  int64_t lengthsBytes() const { return aligned(4 * segments); }
  int64_t tableBytes() const { return aligned(8 * (segments + 1)); }
  /// Sums of exponentials that the caller does not want.
  int64_t sumsBytes() const {
    return isGradient ? 0 : aligned(4 * tokens * heads);
  }
  int64_t beforePlan() const {
    return lengthsBytes() + tables() * tableBytes() + sumsBytes();
  }

  /// "attention_grad of 16 segments of up to 1024 tokens, 16384 in all, causal, 32
  /// heads of 128 with 8 of keys".
  std::string text() const;

  friend bool operator<(const AttentionClass &a, const AttentionClass &b) {
    return a.key() < b.key();
  }
  friend bool operator==(const AttentionClass &a, const AttentionClass &b) {
    return a.key() == b.key();
  }

private:
  static int64_t aligned(int64_t bytes) { return (bytes + 255) / 256 * 256; }
  std::array<double, 10 + gpu::kAttentionTables> key() const;
};

/// Elements of a head that plans take: multiples of the first, up to the second.
constexpr int64_t kPlannedHeadStep = 8, kPlannedHeadMost = 256;
inline bool arePlannedHeads(int64_t elements) {
  return elements % kPlannedHeadStep == 0 && elements <= kPlannedHeadMost;
}

/// Why a call is for our own kernels: what plans do not do, or do differently. Null:
/// a plan may do it, which only its library knows.
const char *whyNotPlanned(const dyna_attention &p);
const char *whyNotPlanned(const dyna_attention_grad &p);

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONCLASS_H
