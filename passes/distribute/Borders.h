//===- Borders.h - What local functions take and give -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_BORDERS_H
#define DYNA_PASSES_DISTRIBUTE_BORDERS_H

#include "dialects/dist/Dist.h"

#include <map>

namespace mlir::dyna {

/// Whether a role is one of the optimizer's: it sees what the plan has reduced,
/// element by element.
bool isOptimizer(Role role);
/// Whether values there are numbered by the functions that give and take them.
bool isSaved(Memory memory);

/// What the functions of one layer at one tensor degree share.
struct LocalLayer {
  LayerOp local, logical;
  dist::MeshAttr meshAttr;
  ::dyna::Mesh mesh;
  ::dyna::AxisParts tokens; ///< over which activations are split at borders
  std::vector<::dyna::Layout> parameters, gradients;

  /// Found on the way. Saved values, by tier, in the order of forward (of
  /// backward_input for the deferred ones), which is visited before those that
  /// take them; gradients that some function adds to.
  std::map<Memory, std::vector<::dyna::Layout>> saved;
  std::vector<bool> isAddedTo;
};

/// The layouts that arguments and results of a local function must have.
class Borders {
public:
  Borders(LocalLayer &layer, FunctionOpInterface function)
      : layer(layer), function(function) {}

  /// In order of the arguments; nothing for one that cannot be there.
  std::optional<::dyna::Layout> ofArgument(unsigned index);
  /// In order of the results. `found` is what the function gives: of a saved
  /// value that nobody has seen before it is the layout from then on.
  std::optional<::dyna::Layout> ofResult(unsigned index,
                                         const ::dyna::Layout &found);

private:
  ::dyna::Layout ofActivation(Type type) const;
  std::optional<::dyna::Layout> ofPlace(PlaceAttr place, Type type);

  LocalLayer &layer;
  FunctionOpInterface function;
  std::map<Memory, size_t> numTaken, numGiven;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_DISTRIBUTE_BORDERS_H
