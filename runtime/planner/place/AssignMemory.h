//===- AssignMemory.h - Assigns offsets to a program's blocks ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H
#define DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/planner/place/PlaceBlocks.h"

#include <map>

namespace dyna {

/// Placements found for other ranks. The ranks of a tensor group have blocks of
/// equal sizes and lifetimes, unless the group is cut unevenly. Placement is the
/// slowest part of planning, so it is done once for them.
using FoundPlacements = std::map<std::vector<BlockLifetime>, BlockPlacement>;

/// Chooses all offsets of one rank's program, and its `dynamic_bytes`. `view` is the
/// rank's. With `largest`, every micro-batch is taken to have that load. `found`, if
/// given, is used and extended.
Status assignMemory(const RankView &view, const plan::Plan &plan,
                    plan::RankProgram &program, const Load *largest,
                    FoundPlacements *found = nullptr);
/// Does the same for a table of the program's blocks.
Status assignMemory(const ProgramBlocks &table, plan::RankProgram &program,
                    FoundPlacements *found = nullptr);

/// Copies the places and `dynamic_bytes` of another rank if both run the same
/// instructions; returns false otherwise. Both ranks must be of one stage and one set
/// of micro-batches: then their blocks are of equal sizes.
bool copyPlaces(const plan::RankProgram &from, plan::RankProgram &to);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ASSIGNMEMORY_H
