//===- StepMemory.h - Lists the memory of phases in a rank's region -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A rank has a place for home's tensors during the whole run. One region
// follows. Every phase of a step has its own memory there for as long as it
// needs it (PhasePlaces):
//
//     phase              0                   1                   2, home
//     values of 0    [ come . . used . . . go on ]
//     gradients of 0          [ . . . . . . . . . home ]
//     values of 1                   [ come . . used . . ]
//     gradients of 1                          [ . . . . . . . . home ]
//     micro-batches           [ 0 ]           [ 1 ]         [ 2 ]
//
// Memory of two layouts exists at every change of phases. Blocks that are never
// alive together may share bytes. Times are positions in the rank's programs,
// one after the other.
//
// A program's own memory, the gradients and the dynamic region, begins after
// its *head*: the waits of switches at its beginning. If a plan has all waits
// there, nothing of the phase before is kept beside its micro-batches. If it
// has them later, it hides the switch.
//
// The planner places this table (PlacePhases.h), P6 to P8 of a step verify it,
// and the executor uses it.
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
/// Returns "values", "what waits of gradients", ...
const char *stepBlockName(StepBlockKind kind);

/// A block of a phase. Zero-byte blocks are never listed.
struct StepBlock {
  StepBlockKind kind = StepBlockKind::Dynamic;
  int phase = 0;
  int64_t bytes = 0; ///< a multiple of the alignment
  int64_t place = plan::noPlace;
  /// Instructions of the rank, counted through all phases, both included.
  int first = 0, last = 0;

  int64_t end() const { return place + bytes; }
};

/// Returns the field of a program's places that belongs to a block.
int64_t &placeIn(plan::PhasePlaces &places, StepBlockKind kind);
int64_t placeIn(const plan::PhasePlaces &places, StepBlockKind kind);

/// Returns true if the step trains: no part of its mini-batch is evaluated.
/// Linear in instructions.
bool trains(const plan::StepPlan &step);

/// Returns how many of the switch instructions at the beginning of a program of
/// phase `phase` belong to its head. These are the ones of its own values and
/// of the gradients of the phase before.
int headOf(const plan::RankProgram &program, int phase);

/// Returns true if gradients of a phase wait to be added on a rank
/// (SwitchCarrier.h). Then `behind`, home's plan in the next phase, computes
/// before it waits for them.
bool addsLate(const plan::Plan &behind, int phase, int rank);

/// Returns the blocks of a rank's region, by phase; `phases` are those of the
/// step. Linear in the rank's instructions.
std::vector<StepBlock>
stepBlocks(const SwitchTable &switches,
           const std::vector<SwitchTable::PhaseSwitches> &phases,
           const plan::StepPlan &step, bool trains, int rank);

/// Returns the size of the region that a step needs: the highest end.
int64_t stepBytes(const std::vector<StepBlock> &blocks);
/// Returns the same while the micro-batches of a phase run; 0 if it has none.
int64_t stepBytes(const std::vector<StepBlock> &blocks, int phase);

/// Verifies P6 to P8 for a rank's region of `limit` bytes. Every block of
/// `blocks`, which are those of the step, must have a place, and nothing else
/// may have one. Blocks that are alive at one time must not overlap, and all
/// must lie inside. A failure sets `phase`. Quadratic in phases.
Status checkStepMemory(const plan::StepPlan &step,
                       const std::vector<StepBlock> &blocks, int rank,
                       int64_t limit, int &phase);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STEPMEMORY_H
