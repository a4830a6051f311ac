//===- FunctionCut.h - Cuts one function out of a block -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DIFFERENTIATE_FUNCTIONCUT_H
#define DYNA_PASSES_DIFFERENTIATE_FUNCTIONCUT_H

#include "dialects/dyna/Dyna.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/IRMapping.h"
#include "passes/differentiate/BlockSlice.h"

namespace mlir::dyna {

/// Returns the name of a layer function: `@layer.role`.
std::string getFunctionName(LayerOp layer, Role role);

/// Says which function to make of a block: what it is given and what it gives
/// back, each in its place. The ops in between follow.
class FunctionCut {
public:
  FunctionCut(LayerOp layer, Role role, Block &block)
      : layer(layer), role(role), block(block) {}

  void take(Value value, Memory memory, int64_t index = 0);
  void give(Value value, Memory memory, int64_t index = 0);
  /// Take and give a tier: many values without an index.
  void takeTier(ArrayRef<Value> values, Memory memory);
  void giveTier(ArrayRef<Value> values, Memory memory);
  /// Arrays of the signature: value i has index i.
  void takeArray(ValueRange values, Memory memory);
  void giveArray(ValueRange values, Memory memory);

  /// Results of ops that move down to their first user if the function has
  /// them, so that they live shortly.
  void sink(ArrayRef<Value> values) { llvm::append_range(sunk, values); }

  /// Builds the function from the ops that the results need.
  LogicalResult build(OpBuilder &builder);

private:
  LogicalResult reportMissing(const BlockSlice &slice);
  FunctionOp createFunction(OpBuilder &builder);
  void sinkOps(IRMapping &mapping);

  LayerOp layer;
  Role role;
  Block &block;
  SmallVector<Value> arguments, results, sunk;
  SmallVector<Attribute> argumentPlaces, resultPlaces;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DIFFERENTIATE_FUNCTIONCUT_H
