//===- RowGroups.h - Decides which row-wise ops share a sweep ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The decision behind `dyna-fuse-rows`, on plain data.
//
// The cost of a sweep is the bytes that it moves. Every operand from outside is
// read once, and every value that something outside needs is written once.
// Values between its own ops are free. Reading the result of a matrix product
// directly before the sweep is free too.
//
// The search starts from sweeps of one op. It merges the pair whose union saves
// the most bytes over the two, until no union saves any. If very many sweeps
// use one value, each is compared with the next few alone.
//
//     m = product x          {bias} {gelu} {add}: m hot, h, h, a, a, z, y = 6
//     h = bias m             {bias, gelu, add}:   m hot, z, y             = 2
//     a = gelu h
//     y = add a, z
//
// Sweeps may merge under three conditions:
//
// - They have one width.
// - No path leads from one to the other through an op outside. The union would
//   have to run before and after that op.
// - No op of the union reads from another one a value that exists only at the
//   end of the sweep (an accumulator). The same holds for a value that it needs
//   as a whole row (`wholeRows`).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_SWEEP_ROWGROUPS_H
#define DYNA_PASSES_MEMORY_SWEEP_ROWGROUPS_H

#include "passes/memory/sweep/FusionGraph.h"

namespace mlir::dyna {

/// Ops that run as one: a sweep (its row-wise ops, in order), with or without a
/// product before it, or any other single op.
struct FusionUnit {
  int leader = -1;       ///< the product or other op; -1: a sweep alone
  std::vector<int> rows; ///< the sweep; may be empty
};

/// Returns the units in the order in which they run. The time is about n log n
/// for n nodes:
///
/// - If two sweeps merge, the smaller one determines the cost.
/// - A pair is looked at again when one of its two sweeps is merged. If a sweep
///   has more than 64 neighbours, only pairs with neighbours of the smaller one
///   are, and the others later.
/// - A search for a path, from both ends, visits at most 8,192 edges. If it
///   does not end by then, a path is assumed.
///
/// Two cases grow faster. A sweep that reads very many matrix products looks at
/// all of them for each pair. Sweeps that keep many others apart may look at
/// those each time they grow. `steps` counts the edges, members and pairs
/// visited.
std::vector<FusionUnit> planSweeps(const FusionGraph &graph,
                                   int64_t *steps = nullptr);

/// Returns true if every node is in one unit and sweeps obey the rules above.
/// Products must stand only in front of sweeps that use them, and the order
/// must respect all uses.
bool isLegal(const FusionGraph &graph, const std::vector<FusionUnit> &units);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_SWEEP_ROWGROUPS_H
