//===- JoinPhases.h - Phases become a step ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_JOINPHASES_H
#define DYNA_RUNTIME_PLANNER_JOINPHASES_H

#include "runtime/plan/graph/SwitchTable.h"

namespace dyna {

/// Puts the instructions of switches into the programs of a step, whose phases
/// have been planned (PlanOptions::switched) and have none. A bucket starts on all
/// its ranks at one cut through the programs of a phase, at which all of them can
/// be at one time: the earliest at which each rank has what it sends, for values
/// the front of its last backward. So there is one order of all that ranks start
/// (P11), whatever the phases are. Waits of values stand before the first layer
/// that reads them, those of gradients before home's first reduction, norm or
/// update, else before the next gradients start or at the end of the phase behind.
/// With `trains`, gradients go home. Fails where a phase is of a graph that is not
/// in the table, the last is not home, or ranks of a phase wait for each other.
/// Linear in the instructions and in what ranks send and get, but for a logarithm
/// of the buckets.
Status joinPhases(const SwitchTable &switches, bool trains,
                  plan::StepPlan &step);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_JOINPHASES_H
