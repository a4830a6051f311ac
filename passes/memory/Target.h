//===- Target.h - What planning knows of a target ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Fusion, memory planning and code generation agree on these numbers because
// all of them ask the module for its target (`dyna.target`). Only what really
// differs stands here; everything else is planned alike.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_TARGET_H
#define DYNA_PASSES_MEMORY_TARGET_H

#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/TargetName.h"

namespace mlir::dyna {

struct Target {
  /// What a product takes along: rows of its result that are still at hand when
  /// they are made, so that reading them is free.
  enum class Epilogues {
    /// Any sweep over the rows of its result, as code that the product calls.
    AnySweep,
    /// What the product's library can be told (Epilogues.h).
    Described
  };

  TargetName name;
  Epilogues epilogues;
  /// Rows of partial sums that a sweep has for each vector it adds to: at most
  /// so many groups of rows are added up apart.
  int64_t partialSums;
  /// Rows of the head whose logits exist at one time.
  int64_t headChunkRows;
  /// Whether bf16 heads may have bf16 logits, which become their gradient in place.
  bool narrowLogits;
  /// Whether the sums of squares of a function are taken at one time, so that the
  /// scratch memory of each is there while all are.
  bool sumsAtOnce;
  /// DYNA_BATCH_*: the tables of a micro-batch that its code reads where it has
  /// ops for them.
  uint32_t batchTables;
  /// Elements of a head of attention, at most; 0: any number.
  int64_t headDim;

  /// Whether a head of this type has such logits: where each rank has a part of the
  /// vocabulary (`shard`) none does.
  bool hasNarrowLogits(Type element, ShardAttr shard) const {
    return narrowLogits && element.isBF16() && !shard;
  }

  static const Target &get(TargetName name);
};

/// The target that the module around `op`, or `op` itself, is planned for.
const Target &targetOf(Operation *op);

/// An error where the module has an op that the target's kernels do not take.
LogicalResult checkLimits(ModuleOp module, const Target &target);

/// An error that says what to run, unless the module is planned for `name`.
LogicalResult requireTarget(ModuleOp module, TargetName name);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_TARGET_H
