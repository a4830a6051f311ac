//===- Borders.h - Derives layouts of arguments and results ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_DISTRIBUTE_DEDUCE_BORDERS_H
#define DYNA_PASSES_DISTRIBUTE_DEDUCE_BORDERS_H

#include "dialects/dist/Dist.h"

#include <map>

namespace mlir::dyna {

/// Returns true for a role of the optimizer. It works element by element on
/// gradients that the plan has already reduced.
bool isOptimizer(Role role);
/// Returns true if values in this memory are saved values, which functions of a
/// layer number in order.
bool isSaved(Memory memory);

/// State that the functions of one layer at one tensor degree share.
struct LocalLayer {
  LayerOp local, logical;
  dist::MeshAttr meshAttr;
  ::dyna::Mesh mesh;
  ::dyna::AxisParts tokens; ///< over which activations are split at borders
  std::vector<::dyna::Layout> parameters, gradients;

  /// Both are found during the walk. `saved` has the layouts of saved values by
  /// tier, in the order of forward (of backward_input for deferred values).
  /// These functions are visited before those that read the values. `isAddedTo`
  /// marks the gradients that some function adds to.
  std::map<Memory, std::vector<::dyna::Layout>> saved;
  std::vector<bool> isAddedTo;
};

/// Computes the layouts that arguments and results of a local function must
/// have.
class Borders {
public:
  Borders(LocalLayer &layer, FunctionOpInterface function)
      : layer(layer), function(function) {}

  /// Returns the layout of an argument, or nothing if the argument is
  /// impossible. Called in order of the arguments.
  std::optional<::dyna::Layout> ofArgument(unsigned index);
  /// Returns the layout of a result. Called in order of the results. `found` is
  /// the layout that the function returns. It becomes the layout of a saved
  /// value that no function has returned before.
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

#endif // DYNA_PASSES_DISTRIBUTE_DEDUCE_BORDERS_H
