//===- RowGroups.h - Which row-wise ops share a sweep -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The decision behind `dyna-fuse-rows`, on plain data.
//
// A sweep costs what it moves: every operand from outside is read once, every
// value that somebody outside needs is written once; what passes between its
// own ops is free, and so is reading the result of a matrix product directly
// behind it. Starting from sweeps of one op, the pair whose union moves the
// fewest bytes compared with the two is merged, until no union moves fewer. Of
// a value that very many sweeps use, each is compared with the next few alone.
//
//   m = product x          {bias} {gelu} {add}: m hot, h, h, a, a, z, y = 6
//   h = bias m             {bias, gelu, add}:   m hot, z, y             = 2
//   a = gelu h
//   y = add a, z
//
// Merging is legal if the sweeps have one width, if no path leads from one to
// the other through an op outside (the union would have to run before and after
// it), and if no op of the union takes from another one a value that exists
// only when the sweep has ended (an accumulator) or that it needs as a whole
// row (`wholeRows`).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_ROWGROUPS_H
#define DYNA_PASSES_MEMORY_ROWGROUPS_H

#include "passes/memory/FusionGraph.h"

namespace mlir::dyna {

/// What runs as one: a sweep (its row-wise ops, in order), behind a product or
/// not, or any other single op.
struct FusionUnit {
  int leader = -1;       ///< the product or other op; -1: a sweep alone
  std::vector<int> rows; ///< the sweep; may be empty
};

/// The units in the order in which they run. About n log n for n nodes: of two
/// sweeps that merge the smaller is what costs; a pair is looked at again when
/// one of its two is merged, but of a sweep with more than 64 neighbours only
/// pairs with those of the smaller one are, all others when their turn comes;
/// and a search for a path, from both ends, goes over at most 8,192 edges,
/// after which there counts as being one. What grows faster: a sweep fed by very
/// many matrix products has them all looked at with each pair, and sweeps that
/// keep many others apart may have to look at those each time they grow.
/// `steps` counts the edges, members and pairs looked at.
std::vector<FusionUnit> planSweeps(const FusionGraph &graph,
                                   int64_t *steps = nullptr);

/// Whether every node is in one unit, sweeps obey the rules above, products
/// stand only in front of sweeps that use them, and the order respects all
/// uses.
bool isLegal(const FusionGraph &graph, const std::vector<FusionUnit> &units);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_ROWGROUPS_H
