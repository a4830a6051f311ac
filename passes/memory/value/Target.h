//===- Target.h - States the properties of a target for planning ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Fusion, memory planning and code generation agree on these numbers because
// all of them ask the module for its target (`dyna.target`). Only real
// differences stand here; everything else is planned alike.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_VALUE_TARGET_H
#define DYNA_PASSES_MEMORY_VALUE_TARGET_H

#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/TargetName.h"

namespace mlir::dyna {

struct Target {
  /// Kinds of epilogues. An epilogue reads rows of a product's result when they
  /// are made, so that reading them is free.
  enum class Epilogues {
    /// Any sweep over the rows of the result, as code that the product calls.
    AnySweep,
    /// Only epilogues that the product's library supports (Epilogues.h).
    Described
  };

  TargetName name;
  Epilogues epilogues;
  /// Rows of partial sums that a sweep has for each vector it adds to. It is
  /// the largest number of groups of rows that are added up separately.
  int64_t partialSums;
  /// Rows of the head whose logits exist at one time.
  int64_t headChunkRows;
  /// True if bf16 heads may have bf16 logits, which become their gradient in
  /// place.
  bool narrowLogits;
  /// True if all sums of squares of a function are computed together, so that
  /// all their scratch memory exists at the same time.
  bool sumsAtOnce;
  /// Bits DYNA_BATCH_*: the tables of a micro-batch that the target's code can
  /// read.
  uint32_t batchTables;
  /// Largest number of elements of a head of attention; 0: no limit.
  int64_t headDim;

  /// Returns true if a head of this type has bf16 logits. It does not if ranks
  /// share the vocabulary (`shard`).
  bool hasNarrowLogits(Type element, ShardAttr shard) const {
    return narrowLogits && element.isBF16() && !shard;
  }

  static const Target &get(TargetName name);
};

/// Returns the target that `op`, or the module around it, is planned for.
const Target &targetOf(Operation *op);

/// Fails if the module has an op that the target's kernels do not support.
LogicalResult checkLimits(ModuleOp module, const Target &target);

/// Fails unless the module is planned for `name`, and says what to run.
LogicalResult requireTarget(ModuleOp module, TargetName name);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_VALUE_TARGET_H
