//===- AttentionClass.h - Groups calls of attention that share a plan -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A plan of cuDNN is made for fixed sizes and takes seconds. Micro-batches are
// ragged, and nearly each has other sizes. So plans are made for classes of
// rounded sizes. A micro-batch is padded to its class by empty segments after
// its own.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONCLASS_H
#define DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONCLASS_H

#include "runtime/abi/Kernels.h"
#include "runtime/device/cuda/kernels/attention/AttentionTablesArguments.h"

#include <array>
#include <string>

namespace dyna::cuda {

/// Properties that determine a plan.
struct AttentionClass {
  bool isGradient = false;
  bool isOrdered = false; ///< gradients are added in the same order each time
  bool causal = false;
  int64_t segments = 0; ///< largest number; a power of two
  int64_t longest =
      0;              ///< largest number of tokens of a segment; a power of two
  int64_t tokens = 0; ///< largest sum; a fourth of a power of two
  int64_t heads = 0, kvHeads = 0, headDim = 0;
  double scale = 0;
  /// Elements from one row to the next, in the order of `gpu::AttentionTable`.
  /// Strides of gradients are 0 in forward.
  std::array<int64_t, gpu::kAttentionTables> strides = {};

  /// Returns the class of a call. `whyNotPlanned` must accept it, and it has at
  /// least one segment.
  static AttentionClass of(const dyna_attention &p);
  static AttentionClass of(const dyna_attention_grad &p, bool isOrdered);

  /// Returns the number of tables that its plans read; those of gradients come
  /// last.
  int32_t tables() const {
    return isGradient ? gpu::kAttentionTables : gpu::kAttentionForwardTables;
  }
  /// Sizes of the device memory of a call beside the plan's own workspace. The
  /// parts follow each other, each at a multiple of 256 bytes.
  int64_t lengthsBytes() const { return aligned(4 * segments); }
  int64_t tableBytes() const { return aligned(8 * (segments + 1)); }
  /// Returns the bytes for sums of exponentials that the caller does not want.
  int64_t sumsBytes() const {
    return isGradient ? 0 : aligned(4 * tokens * heads);
  }
  int64_t beforePlan() const {
    return lengthsBytes() + tables() * tableBytes() + sumsBytes();
  }

  /// Formats the class: "attention_grad of 16 segments of up to 1024 tokens,
  /// 16384 in all, causal, 32 heads of 128 with 8 of keys".
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

/// Legal sizes of a head in plans: multiples of the first, up to the second.
constexpr int64_t kPlannedHeadStep = 8, kPlannedHeadMost = 256;
inline bool arePlannedHeads(int64_t elements) {
  return elements % kPlannedHeadStep == 0 && elements <= kPlannedHeadMost;
}

/// Return why a call needs our own kernels: plans cannot do it, or do it
/// differently. Null: a plan may exist, which only the library knows.
const char *whyNotPlanned(const dyna_attention &p);
const char *whyNotPlanned(const dyna_attention_grad &p);

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_ATTENTIONCLASS_H
