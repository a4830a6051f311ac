//===- BlockDeducer.h - Layouts of all values of one block ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_BLOCKDEDUCER_H
#define DYNA_PASSES_DISTRIBUTE_BLOCKDEDUCER_H

#include "dialects/dist/Dist.h"
#include "passes/distribute/Splits.h"

namespace mlir::dyna {

/// Walks a block forward, chooses a split for every op (Splits.h), inserts the
/// reshards that its operands need and writes the layouts of its results on it.
/// A value that has been resharded once exists in several layouts, and later
/// uses take the nearest.
class BlockDeducer {
public:
  /// `tokens`: over what activations between layers are split, if at all.
  BlockDeducer(Block &block, dist::MeshAttr meshAttr,
               const ::dyna::AxisParts &tokens)
      : block(block), meshAttr(meshAttr), mesh(meshAttr.getMesh()),
        tokens(tokens) {}

  /// Before `run`. Fixed values are never resharded; of an accumulator it may
  /// be left open over what it is partial.
  void setArgument(BlockArgument argument, const ::dyna::Layout &layout,
                   bool isFixed = false, bool takesAnyPartial = false);
  /// All ops but the terminator.
  LogicalResult run();

  /// The layout that a value was computed in.
  const ::dyna::Layout &layoutOf(Value value) {
    return infos[value].layouts[0];
  }
  /// The layout of a value that the terminator now uses.
  const ::dyna::Layout &layoutOfVersion(Value version);

  /// Make an operand of the terminator have a layout ...
  LogicalResult bring(OpOperand &use, const ::dyna::Layout &wanted);
  /// ... take a version that is no sum, if there is one ...
  void preferWhole(OpOperand &use);
  /// ... or make one, as cheaply as possible.
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

#endif // DYNA_PASSES_DISTRIBUTE_BLOCKDEDUCER_H
