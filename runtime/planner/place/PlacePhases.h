//===- PlacePhases.h - Where phases lie in a rank's region ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Neighbouring phases are there side by side, others hardly ever are (StepMemory.h).
// So phases lie at the two ends of the region in turn, and the micro-batches of the
// one that runs in what is free between them:
//
//     phase 0    | V0 G0 |  dynamic region of 0    | .. V1 |
//     phase 1    | V0 G0 |  dynamic region of 1    | G1 V1 |
//     2, home    |      dynamic region of 2        | G1    |
//
// Where a rank's region is too small for what other phases have beside the
// micro-batches of one, they take turns with it: that rank's program waits at its
// beginning for all that comes to the phase and goes from the one before, and all
// ranks start what leaves it when they are done. That takes time, as nothing hides
// these switches.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLACEPHASES_H
#define DYNA_RUNTIME_PLANNER_PLACEPHASES_H

#include "runtime/plan/verify/StepMemory.h"

#include <utility>
#include <vector>

namespace dyna {

/// Places the phases of a step that is planned and joined (JoinPhases.h), and lets
/// them take turns where they must. `regionBytes`: of each rank; empty: not
/// limited. ResourceExhausted where a rank's region does not hold a phase, or two
/// layouts side by side. Linear in instructions, and quadratic in phases.
Status placePhases(const SwitchTable &switches,
                   const std::vector<int64_t> &regionBytes,
                   plan::StepPlan &step);

/// Bytes of a rank's region, at most, that are not for micro-batches while a graph
/// computes, whatever phases a step has: what the graph has of parameters, unless it
/// is home, and where they do not take turns with it what is left of the phase
/// before and comes to the next. `order`: graphs in the order of phases, home last.
int64_t heldBeside(const SwitchTable &switches, const std::vector<int> &order,
                   int graph, int rank, bool trains, bool takesTurns);

/// Of these graphs' parameters what a rank has at one time, at most, if any may
/// follow any other: all of one, and the values of the next. Transit comes on top.
/// Quadratic.
int64_t mostSideBySide(const std::vector<HeldParameters> &graphs);

/// Two graphs of which one follows the other.
struct Neighbours {
  int before = -1, behind = -1; ///< -1: there are none
  int64_t bytes = 0; ///< of a rank, while the one comes after the other
};
/// Those that take the most on a rank, at most.
Neighbours largestNeighbours(const SwitchTable &switches,
                             const std::vector<int> &order, int rank,
                             bool trains);

/// How large the region of each rank should be for dynamic regions of `dynamic`
/// bytes, by graph and rank: placePhases does with `least`, and with `most` no
/// phases take turns, unless they lie very unevenly.
struct RegionNeed {
  std::vector<int64_t> least, most;
};
RegionNeed needOfRegions(const SwitchTable &switches,
                         const std::vector<int> &order,
                         const std::vector<std::vector<int64_t>> &dynamic,
                         bool trains);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLACEPHASES_H
