//===- ProductRuns.h - Products that run as one ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Query, key and value are three products of one x, as are gate and up. Where
// their weights lie one after the other in memory, they are one matrix, and the
// three are one product, if only what they write (or read, in the gradients)
// lies side by side, row by row, too:
//
//   forward           [q | k | v]  = x [Wq; Wk; Wv]^T
//   input gradient    dx           = [dq | dk | dv] [Wq; Wk; Wv]
//   weight gradient   [dWq; dWk; dWv] += [dq | dk | dv]^T x
//
// Three steps, each of which looks at the ops alone and can do without the
// others: `dyna-join-products` puts such products next to each other,
// `dyna-plan-memory` puts their activations side by side (`column` and `stride`
// of a place), and code generation makes one product of those that are. That
// weights, and their gradients, really are neighbours is seen when the code
// runs: the layout of parameters is the runtime's.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PRODUCTRUNS_H
#define DYNA_PASSES_MEMORY_PRODUCTRUNS_H

#include "dialects/dyna/Dyna.h"

namespace mlir::dyna {

/// Products of one kind that could be one, in the order of their weights.
struct ProductRun {
  SmallVector<Operation *> ops;
  /// The activation that has a part per product: the results of
  /// `dyna.linear`, the gradients `dy` of the others.
  SmallVector<Value> parts() const;
  /// The weight, or the weight's gradient, of each product.
  SmallVector<Value> matrices() const;
  /// The op that stands last in the block.
  Operation *last() const;
};

/// All runs of two and more products of a function, as they would be if their
/// ops were brought together: `dyna.linear` of one x by neighbouring weights, a
/// chain of `dyna.linear_grad_input` that add to each other, and
/// `dyna.linear_grad_weight` of one x for neighbouring gradients. Parameters
/// are neighbours if no other matrix lies between them in the layer's list.
/// Parts are whole cache lines wide, so that what is aligned stays so. Each
/// product is in one run at most.
SmallVector<ProductRun> findProductRuns(FunctionOp function);

/// The runs whose ops follow each other without any other op between them.
SmallVector<ProductRun> findAdjacentRuns(FunctionOp function);

/// Those of them whose parts lie side by side: they run as one, when the last
/// of them is reached. Of a function with places.
SmallVector<ProductRun> findJoinedRuns(FunctionOp function);

/// Bytes of a row of an activation.
int64_t rowBytesOf(Type activation);
inline int64_t rowBytesOf(Value activation) {
  return rowBytesOf(activation.getType());
}

/// Whether the op reads and writes activations at any stride.
inline bool takesStrides(Operation *op) {
  return op->hasTrait<mlir::dyna::OpTrait::AnyStride>();
}

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_PRODUCTRUNS_H
