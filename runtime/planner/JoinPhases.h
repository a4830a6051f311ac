//===- JoinPhases.h - Phases become a step ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_JOINPHASES_H
#define DYNA_RUNTIME_PLANNER_JOINPHASES_H

#include "runtime/plan/SwitchTable.h"

namespace dyna {

/// Puts the instructions of switches into the programs of a step, whose phases
/// have been planned (PlanOptions::switched) and have none: starts where
/// StepPlan.h says, waits of values before the first layer that reads them, those
/// of gradients before home's first reduction, norm or update, else at the end of
/// the phase behind. With `trains`, gradients go home. Fails where a phase is of
/// a graph that is not in the table, or the last is not home. Linear in the
/// instructions and in what ranks send and get.
Status joinPhases(const SwitchTable &switches, bool trains,
                  plan::StepPlan &step);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_JOINPHASES_H
