//===- ProductRuns.h - Finds products that can run as one -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Query, key and value are three products of one x, and so are gate and up. If
// their weights are neighbours in memory, the weights form one matrix. The
// three are then one product, if their results (or inputs, in gradients) lie
// side by side too, row by row:
//
//   forward           [q | k | v]  = x [Wq; Wk; Wv]^T
//   input gradient    dx           = [dq | dk | dv] [Wq; Wk; Wv]
//   weight gradient   [dWq; dWk; dWv] += [dq | dk | dv]^T x
//
// Three steps use this. Each looks at the ops alone and works without the
// others:
//
// - `dyna-join-products` puts such products next to each other;
// - `dyna-plan-memory` puts their activations side by side (`column` and
//   `stride` of a place);
// - code generation makes one product of those that lie side by side.
//
// Only the running code can see that weights, and their gradients, really are
// neighbours, because the runtime decides the layout of parameters.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_VALUE_PRODUCTRUNS_H
#define DYNA_PASSES_MEMORY_VALUE_PRODUCTRUNS_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// Products of one kind that could be one product, in the order of their
/// weights.
struct ProductRun {
  SmallVector<Operation *> ops;
  /// Returns the activations that have a part per product: the results of
  /// `dyna.linear`, and the gradients `dy` of the others.
  SmallVector<Value> parts() const;
  /// Returns the weight, or the weight's gradient, of each product.
  SmallVector<Value> matrices() const;
  /// Returns the op that stands last in the block.
  Operation *last() const;
};

/// Returns all runs of two or more products of a function, wherever their ops
/// stand. There are three kinds:
///
/// - `dyna.linear` of one x by neighbouring weights;
/// - a chain of `dyna.linear_grad_input` that add to each other;
/// - `dyna.linear_grad_weight` of one x for neighbouring gradients.
///
/// Parameters are neighbours if no other matrix lies between them in the
/// layer's list. Parts are whole cache lines wide, so that alignment is kept.
/// Each product is in at most one run.
SmallVector<ProductRun> findProductRuns(FunctionOp function);

/// Returns the runs whose ops follow each other without any other op between
/// them.
SmallVector<ProductRun> findAdjacentRuns(FunctionOp function);

/// Returns the adjacent runs whose parts lie side by side. They run as one
/// product when the last of them is reached. The function must have places.
SmallVector<ProductRun> findJoinedRuns(FunctionOp function);

/// Returns the bytes of a row of an activation.
int64_t rowBytesOf(Type activation);
inline int64_t rowBytesOf(Value activation) {
  return rowBytesOf(activation.getType());
}

/// Returns true if the op reads and writes activations at any stride.
inline bool takesStrides(Operation *op) {
  return op->hasTrait<mlir::dyna::OpTrait::AnyStride>();
}

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_VALUE_PRODUCTRUNS_H
