//===- PlacePhases.h - Places the phases of a step in regions ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two neighbouring phases have memory at one time; other pairs rarely do
// (StepMemory.h). So phases lie at the two ends of the region in turn. The
// micro-batches of the running phase lie in the free part between them:
//
//     phase 0    | V0 G0 |  dynamic region of 0    | .. V1 |
//     phase 1    | V0 G0 |  dynamic region of 1    | G1 V1 |
//     2, home    |      dynamic region of 2        | G1    |
//
// If a rank's region is too small for that, the phases take turns with it. The
// rank's program then waits at its beginning for all that comes to the phase and
// all that leaves the phase before. All ranks start what leaves the phase when they
// are done. This costs time, because nothing hides these switches.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLACEPHASES_H
#define DYNA_RUNTIME_PLANNER_PLACEPHASES_H

#include "runtime/plan/verify/StepMemory.h"

#include <utility>
#include <vector>

namespace dyna {

/// Places the phases of a planned and joined step (JoinPhases.h). Phases take turns
/// if they must. `regionBytes` has the bytes of each rank's region; empty: no limit.
/// Returns ResourceExhausted if a region does not hold a phase, or two layouts side
/// by side. Linear in instructions and quadratic in phases.
Status placePhases(const SwitchTable &switches,
                   const std::vector<int64_t> &regionBytes,
                   plan::StepPlan &step);

/// Returns the most bytes of a rank's region that are not for micro-batches while a
/// graph computes, for any choice of phases. These are the graph's own parameters,
/// unless it is home. Unless phases take turns, what is left of the phase before and
/// what comes for the next count too. `order` lists the graphs of phases, home last.
int64_t heldBeside(const SwitchTable &switches, const std::vector<int> &order,
                   int graph, int rank, bool trains, bool takesTurns);

/// Returns the most bytes of parameters that a rank holds at one time if any graph
/// may follow any other. A rank then holds all of one graph and the values of the
/// next. Transit buffers come on top. Quadratic in graphs.
int64_t mostSideBySide(const std::vector<HeldParameters> &graphs);

/// Two graphs that follow each other.
struct Neighbours {
  int before = -1, behind = -1; ///< -1: no such pair
  int64_t bytes = 0; ///< bytes of a rank while `behind` follows `before`
};
/// Returns the neighbours that need the most bytes on a rank.
Neighbours largestNeighbours(const SwitchTable &switches,
                             const std::vector<int> &order, int rank,
                             bool trains);

/// Bytes that the region of each rank needs. `placePhases` succeeds with `least`.
/// With `most` no phases take turns, unless their sizes differ very much.
struct RegionNeed {
  std::vector<int64_t> least, most;
};
/// Computes these for dynamic regions of `dynamic` bytes, by graph and rank.
RegionNeed needOfRegions(const SwitchTable &switches,
                         const std::vector<int> &order,
                         const std::vector<std::vector<int64_t>> &dynamic,
                         bool trains);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLACEPHASES_H
