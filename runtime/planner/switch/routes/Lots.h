//===- Lots.h - Groups elements with equal routes ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model has hundreds of tensors, and a layout cuts each into a box per rank.
// But routes depend only on the ranks that have an element and those that need
// it. So
//
//     tensors with equal boxes before and after are      sixty equal layers
//       a class
//     a class is cut along all borders of its boxes      8 boxes per matrix
//       into cells: all elements of one have the same
//       holders and needers
//     cells of all classes with the same holders and     8 lots per pair
//       needers are a lot                                of stages
//
// Routes are searched for lots, by their bytes. The time does not depend on the
// size and the number of tensors.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SWITCHES_LOTS_H
#define DYNA_RUNTIME_PLANNER_SWITCHES_LOTS_H

#include "runtime/plan/graph/SwitchPlan.h"

#include <vector>

namespace dyna::switches {

struct Lot {
  std::vector<int> holders, needers; ///< sorted
  Delivery delivery = Delivery::All;
  int64_t bytes = 0;  ///< of all its cells in all tensors
  int64_t pieces = 0; ///< into which these can be cut, at most

  /// Needers that do not have it; empty for a lot that goes to one of several
  /// ranks, if one of them has it.
  std::vector<int> lacking;
  /// Needers that have it.
  std::vector<int> staying;
};

struct Cell {
  MatrixBox box;
  int lot = -1;
};

struct TensorClass {
  std::vector<int> tensors; ///< in order
  std::vector<Cell> cells;  ///< in the order of rows, then of columns
};

struct Lots {
  std::vector<Lot> lots;
  std::vector<TensorClass> classes;
  std::vector<int> classOf; ///< of each tensor
};

/// Pieces of one cell, at most.
constexpr int64_t kMostPieces = 16;

/// Returns the largest number of pieces, each of at least `smallest` bytes,
/// into which a box can be cut. It is cut along rows, or else along columns.
int64_t mostPieces(const MatrixBox &box, int64_t elementBytes,
                   int64_t smallest);

/// Finds the lots of tensors. `smallestPiece` is in bytes. Fails with the first
/// box that no rank has. Omits cells that no rank needs. O(boxes + cells of a
/// class times the boxes around each).
StatusOr<Lots> findLots(const std::vector<SwitchTensor> &tensors,
                        int64_t smallestPiece = 1);

} // namespace dyna::switches

#endif // DYNA_RUNTIME_PLANNER_SWITCHES_LOTS_H
