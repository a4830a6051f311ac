//===- JoinPhases.h - Joins phases to a step --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_JOINPHASES_H
#define DYNA_RUNTIME_PLANNER_JOINPHASES_H

#include "runtime/plan/graph/SwitchTable.h"

namespace dyna {

/// Inserts the instructions of switches into the programs of a step. Its phases are
/// planned with PlanOptions::switched and have no such instructions yet.
///
/// A bucket starts on all its ranks at one cut through the programs of a phase. All
/// ranks can be at that cut at one time. It is the earliest one at which each rank
/// has what it sends; for values, the front of its last backward. So all ranks have
/// one order of starts (P11) for any phases.
///
/// Waits for values stand before the first layer that reads them. Waits for
/// gradients stand before home's first reduction, norm or update. In other
/// phases they stand before the next gradients start, or at the end of the next
/// phase. With `trains`, gradients go home.
///
/// Fails if the graph of a phase is not in the table or the last one is not home.
/// Fails, too, if ranks of a phase wait for each other. O((instructions + transfers)
/// log buckets).
Status joinPhases(const SwitchTable &switches, bool trains,
                  plan::StepPlan &step);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_JOINPHASES_H
