//===- KernelTable.h - Lists the kernels of one instruction set -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The inner kernels exist once per instruction set. Kernels.cpp is compiled
// several times with different flags, and each copy fills one table. A device
// chooses its table when it is created, from the features of the processor at
// run time, not at build time. A task is the work of one thread: kernels know
// nothing of teams.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_KERNELTABLE_H
#define DYNA_RUNTIME_DEVICE_HOST_KERNELTABLE_H

#include "runtime/abi/Kernels.h"

namespace dyna {

/// Number of queries, and of keys, of one block of scores.
constexpr int64_t kBlockRows = 64;
/// Number of queries, and of keys, of one task of the backward pass. A multiple
/// of kBlockRows.
constexpr int64_t kSuperRows = 256;

/// Instructions per repeat in `secondsOfF32`; of 16 f32 lanes each.
constexpr int64_t kTimedInstructions = 12;

struct SparseTable;

/// Returns the size to which heads are padded in accumulators and packed
/// copies.
inline int64_t padHeadDim(int64_t headDim) {
  return dyna_padded_head_dim(headDim);
}

/// Returns true if the backward pass adds up its gradients in the caller's dq,
/// dk, dv. Otherwise (bf16, or a head size that fills no vectors) it adds them
/// up in the workspace. The scratch formula of Kernels.h follows the same rule.
constexpr bool accumulatesInPlace(int64_t element, int64_t headDim) {
  return element != 2 && headDim % 16 == 0;
}

/// One block of queries of one head.
struct AttentionTask {
  const dyna_segment *segment;
  int64_t head;
  int64_t firstQuery; ///< within the segment
  int64_t queries;    ///< at most kBlockRows
};

/// Memory in which the backward pass adds up dq, dk and dv (elements of the
/// accumulator type), and the rows' sums of out * dout.
struct AttentionSums {
  void *dq;
  int64_t dqStride;
  int64_t dqHead; ///< distance of two heads
  void *dk, *dv;
  int64_t dkStride, dvStride, dkHead;
  void *delta;          ///< [tq, heads]
  int64_t firstKey = 0; ///< key that row 0 of dk and dv belongs to
};

/// Queries x keys of one pair of super-blocks, for all query heads of one
/// key/value head. With no rows on one side the other is only cleared.
struct AttentionGradTask {
  const dyna_segment *segment;
  int64_t kvHead;
  int64_t firstQuery, queries; ///< at most kSuperRows
  int64_t firstKey, keys;      ///< at most kSuperRows
  bool clearQueries;           ///< first task of these queries
  bool clearKeys;              ///< first task of these keys
};

/// One row of logits, or of a part of them, whose gradient is written when
/// asked for.
struct LossRow {
  void *logits;   ///< accumulator type; overwritten
  void *gradient; ///< compute type; null: not wanted; may be `logits` itself
  int64_t vocab;
  int64_t target; ///< outside the logits if they are a part
  double gradientScale;

  bool hasTarget() const { return target >= 0 && target < vocab; }
};

/// Terms that are summed over the ranks that share a row of logits.
struct LossTerms {
  double sum;    ///< of exp(logit - most)
  double target; ///< the target's logit; 0 if it is in another part
};

/// A strided block of rows.
struct CopyBlock {
  const void *source;
  int64_t sourceStride;
  void *target;
  int64_t targetStride;
  int64_t rows, columns;
};

/// f32 sums in two halves: the upper ones are bf16, cut off, not rounded, until
/// the last addition rounds them and drops the lower ones.
struct SplitSum {
  const float *source; ///< the addend
  uint16_t *upper, *lower;
  int64_t elements;
  bool isFirst; ///< the lower halves are not there yet: zeros
  bool isLast;
};

/// Kernels of one compute type.
struct TypedKernels {
  /// Bytes of scratch per thread.
  int64_t (*attentionScratch)(int64_t headDim);
  int64_t (*attentionGradScratch)(int64_t headDim);
  void (*attention)(const dyna_attention &, const AttentionTask &,
                    void *scratch);
  void (*attentionGrad)(const dyna_attention_grad &, const AttentionSums &,
                        const AttentionGradTask &, void *scratch);
  /// Computes the loss of a whole row: the three below, one after the other.
  double (*lossRow)(const LossRow &);
  /// Returns the largest logit; minus infinity if there are none.
  double (*largestLogit)(const LossRow &);
  /// Replaces the logits by exp(logit - most).
  LossTerms (*lossTerms)(const LossRow &, double most);
  /// Replaces the exponentials by the gradient; `sum` is that of the whole row.
  void (*lossGradient)(const LossRow &, double sum);
  /// Converts from the accumulator type to the compute type.
  void (*narrow)(const CopyBlock &);
  /// Converts from the compute type to the accumulator type.
  void (*widen)(const CopyBlock &);
};

struct KernelTable {
  const char *name;
  TypedKernels f32, f64, bf16;
  /// Adds an f32 block to a bf16 block: target bf16 += source f32.
  void (*addNarrow)(const CopyBlock &);
  void (*addSplit)(const SplitSum &);
  /// Return the seconds of `repeats` times kTimedInstructions independent
  /// multiply-adds. They are of f32 vectors, or of vectors of bf16 pairs. 0 if
  /// this is unknown or the instruction does not exist.
  double (*secondsOfF32)(int64_t repeats);
  double (*secondsOfBf16)(int64_t repeats);
  const SparseTable *sparse; ///< sparse/SparseTable.h
};

const KernelTable &baselineKernels();
#if defined(__x86_64__)
const KernelTable &avx2Kernels();
const KernelTable &avx512Kernels();
#endif

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_KERNELTABLE_H
