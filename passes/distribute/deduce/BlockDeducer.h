//===- BlockDeducer.h - Deduces the layouts of one block --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_DEDUCE_BLOCKDEDUCER_H
#define DYNA_PASSES_DISTRIBUTE_DEDUCE_BLOCKDEDUCER_H

#include "dialects/dist/Dist.h"
#include "passes/distribute/deduce/Splits.h"

namespace mlir::dyna {

/// Walks a block forward. For every op it chooses a split (Splits.h), inserts
/// the reshards of its operands, and records the layouts of its results on it.
/// A value that was resharded exists in several layouts; later uses take the
/// nearest.
class BlockDeducer {
public:
  /// `tokens`: the axes over which activations between layers are split, if
  /// any.
  BlockDeducer(Block &block, dist::MeshAttr meshAttr,
               const ::dyna::AxisParts &tokens)
      : block(block), meshAttr(meshAttr), mesh(meshAttr.getMesh()),
        tokens(tokens) {}

  /// Sets the layout of an argument; call this before `run`. Fixed values are
  /// never resharded. An accumulator may leave open over which axes it is
  /// partial.
  void setArgument(BlockArgument argument, const ::dyna::Layout &layout,
                   bool isFixed = false, bool takesAnyPartial = false);
  /// Visits all ops but the terminator.
  LogicalResult run();

  /// Returns the layout that a value was computed in.
  const ::dyna::Layout &layoutOf(Value value) {
    return infos[value].layouts[0];
  }
  /// Returns the layout of a value that the terminator now uses.
  const ::dyna::Layout &layoutOfVersion(Value version);

  /// Reshards an operand of the terminator to `wanted`, from its cheapest
  /// version.
  LogicalResult bring(OpOperand &use, const ::dyna::Layout &wanted);
  /// Uses a version of the operand that is not partial, if there is one.
  void preferWhole(OpOperand &use);
  /// Does the same, and makes such a version at the lowest cost if there is
  /// none.
  LogicalResult settle(OpOperand &use);

private:
  struct Info {
    std::vector<::dyna::Layout> layouts; ///< the first is the value's own
    SmallVector<Value> versions;
    bool isFixed = false, takesAnyPartial = false;
  };

  LogicalResult visit(Operation *op);
  OperandState stateOf(Value value);
  Value makeVersion(Operation *before, Value value, int source,
                    const ::dyna::Layout &wanted);

  Block &block;
  dist::MeshAttr meshAttr;
  ::dyna::Mesh mesh;
  ::dyna::AxisParts tokens;
  llvm::DenseMap<Value, Info> infos;
  llvm::DenseMap<Value, ::dyna::Layout> versionLayouts;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_DEDUCE_BLOCKDEDUCER_H
