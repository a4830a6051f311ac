//===- BlockSlice.h - Finds the ops that some values need -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_BLOCKSLICE_H
#define DYNA_PASSES_DIFFERENTIATE_BLOCKSLICE_H

#include "mlir/IR/Block.h"
#include "mlir/IR/Operation.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace mlir::dyna {

/// The part of a block that computes some values from others.
struct BlockSlice {
  /// In block order.
  SmallVector<Operation *> ops;
  /// The block arguments that it reads although they are not available, each
  /// with one op that reads it (null: the argument itself was asked for).
  SmallVector<std::pair<BlockArgument, Operation *>> missing;

  bool contains(Operation *op) const { return set.contains(op); }
  llvm::DenseSet<Operation *> set;
};

/// Returns the ops that compute `roots` from the values that are `available`.
/// Linear in the size of the block.
BlockSlice computeSlice(Block &block, ArrayRef<Value> roots,
                        llvm::function_ref<bool(Value)> available);

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_BLOCKSLICE_H
