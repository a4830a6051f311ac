//===- AssignMemory.h - Offsets for the blocks of a program -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H
#define DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H

#include "runtime/plan/graph/RankView.h"
#include "runtime/planner/place/PlaceBlocks.h"

#include <map>

namespace dyna {

/// Of other ranks, whose blocks may have the same sizes and lives: those of a
/// tensor group do, unless it is cut unevenly, and placing takes longest of all.
using FoundPlacements = std::map<std::vector<BlockLifetime>, BlockPlacement>;

/// Chooses all offsets of one rank's program, and its `dynamic_bytes`; with
/// `largest`, as if every micro-batch had that extent. The view is the rank's.
/// What was found is used and added to, if given.
Status assignMemory(const RankView &view, const plan::Plan &plan,
                    plan::RankProgram &program, const BatchExtent *largest,
                    FoundPlacements *found = nullptr);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H
