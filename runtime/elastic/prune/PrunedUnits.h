//===- PrunedUnits.h - Lists heads and channels of a model ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A unit has the weights that are pruned together. An attention head has its rows of the
// query, key and value matrices, and its columns of the matrix behind them. A channel has
// its row of each matrix before the element-wise ops, and its column of the one behind.
// Manifests have these lists for each kind of layer (plan::WeightGroups). Lists of layers
// that share a matrix are one list.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_PRUNEDUNITS_H
#define DYNA_RUNTIME_ELASTIC_PRUNEDUNITS_H

#include "runtime/plan/model/Model.h"

#include <vector>

namespace dyna {

/// Kinds of what is pruned: single weights, or units.
enum class PrunedStructure { Element, Head, Channel };

/// Returns "element", "head" or "channel".
const char *nameOf(PrunedStructure structure);

/// Units of equal shape. Unit u has the range [u * width, (u + 1) * width) of each part.
struct UnitList {
  struct Part {
    int parameter = 0;
    int dimension = 0; ///< 0: units are rows of the matrix, 1: columns
    int64_t width = 0; ///< of one unit along this dimension
  };
  int64_t count = 0;
  int layer = 0; ///< the first one that has them
  std::vector<Part> parts;

  /// Returns the weights of one unit.
  int64_t weights(const Model &model) const;
};

/// Returns the units of a structure, in the order of layers. Fails with InvalidArgument if
/// the model has none, or if a matrix of one is frozen. It also fails if layers share a
/// matrix and differ in its units. O(layers * parameters).
StatusOr<std::vector<UnitList>> prunedUnits(const Model &model,
                                            PrunedStructure structure);

/// Returns true for each parameter that is a part of a unit.
std::vector<bool> parametersOf(const Model &model,
                               const std::vector<UnitList> &units);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_PRUNEDUNITS_H
