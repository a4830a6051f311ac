//===- StepMemory.h - What phases have in a rank's region -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Of home's tensors a rank has a place for the whole run. Behind them is one
// region, in which every phase of a step has its own for as long as it needs it
// (PhasePlaces):
//
//     phase              0                   1                   2, home
//     values of 0    [ come . . used . . . go on ]
//     gradients of 0          [ . . . . . . . . . home ]
//     values of 1                   [ come . . used . . ]
//     gradients of 1                          [ . . . . . . . . home ]
//     micro-batches           [ 0 ]           [ 1 ]         [ 2 ]
//
// Two layouts side by side are there at every change of phases; what lies apart in
// time may lie in the same bytes. Times are places in the rank's
// programs, one behind the other. A program's own memory, the gradients and the
// dynamic region, begins behind its *head*, the waits of switches that it begins
// with: a plan that has all of them there keeps nothing of the phase before
// beside its micro-batches, and one that has them later hides the switch.
//
// The same table is what the planner places (PlacePhases.h), what P6 to P8 of a
// step are proven by, and what the executor goes by.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STEPMEMORY_H
#define DYNA_RUNTIME_PLAN_STEPMEMORY_H

#include "runtime/plan/graph/SwitchTable.h"

#include <vector>

namespace dyna {

enum class StepBlockKind {
  Values,
  Gradients,
  Dynamic,
  ValueTransit,
  GradientTransit
};
/// "values", "what waits of gradients".
const char *stepBlockName(StepBlockKind kind);

/// There are none of no bytes.
struct StepBlock {
  StepBlockKind kind = StepBlockKind::Dynamic;
  int phase = 0;
  int64_t bytes = 0; ///< a multiple of the alignment
  int64_t place = plan::noPlace;
  /// Instructions of the rank, counted through all phases, both included.
  int first = 0, last = 0;

  int64_t end() const { return place + bytes; }
};

/// Where the places of a program have the one of a block.
int64_t &placeIn(plan::PhasePlaces &places, StepBlockKind kind);
int64_t placeIn(const plan::PhasePlaces &places, StepBlockKind kind);

/// A mini-batch that nobody evaluates, nor parts of it. Linear in instructions.
bool trains(const plan::StepPlan &step);

/// Of the switch instructions that a program of phase `phase` begins with, those
/// that belong to its own values and to the gradients of the phase before.
int headOf(const plan::RankProgram &program, int phase);

/// Whether gradients of a phase wait to be added on a rank (SwitchCarrier.h):
/// `behind`, home's plan in the phase behind, computes before it waits for them.
bool addsLate(const plan::Plan &behind, int phase, int rank);

/// What a rank has in its region, by phase; `phases` are those of the step.
/// Linear in the rank's instructions.
std::vector<StepBlock>
stepBlocks(const SwitchTable &switches,
           const std::vector<SwitchTable::PhaseSwitches> &phases,
           const plan::StepPlan &step, bool trains, int rank);

/// How much of the region a step needs: the highest end.
int64_t stepBytes(const std::vector<StepBlock> &blocks);
/// The same while the micro-batches of a phase run; 0 if it has none.
int64_t stepBytes(const std::vector<StepBlock> &blocks, int phase);

/// P6 to P8 of a rank's region of `limit` bytes: every block of `blocks`, which
/// are those of the step, has a place, and nothing else has; those alive at one
/// time lie apart; all lie inside. `phase` is set by a failure. Quadratic in
/// phases.
Status checkStepMemory(const plan::StepPlan &step,
                       const std::vector<StepBlock> &blocks, int rank,
                       int64_t limit, int &phase);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STEPMEMORY_H
