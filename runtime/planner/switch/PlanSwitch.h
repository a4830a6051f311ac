//===- PlanSwitch.h - Plans the messages of a switch ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans how tensors get from one distribution to another, between any two
// layouts and any two sets of ranks. Links are faster inside a node than
// between nodes. The task is that of HotSPa's Algorithm 1 (section 5.2), with
// three differences. A node receives one copy. Ports are chosen together for
// all tensors, for receivers as well as senders. Idle ranks lend their ports.
// docs/switching.md has the algorithm and its measurements.
//
// Planning has three steps, each a file of routes/. Elements with the same
// holders and needers become lots (Lots.h). Lots get routes over the ports
// (Routes.h). Routes are dealt to the tensors' boxes in buckets (DealRoutes.h).
// Routes without detours are tried first. If others save time at the busiest
// port, both plans are simulated by their messages. At the end, buckets that
// pass something on move after others, if that saves time. Algorithm 1 replaces
// the plan if it is faster within the same limits.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANSWITCH_H
#define DYNA_RUNTIME_PLANNER_PLANSWITCH_H

#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/sim/SwitchNetwork.h"

namespace dyna {

/// Plans a switch of `tensors`, which are in the order in which they are
/// needed. The plan passes `checkSwitch` for `network.ranks`. Equal tensors,
/// networks and options give equal plans. Fails if no rank has a needed
/// element, or if a tensor is on ranks that the network does not have. Costs as
/// much as the three steps together.
StatusOr<SwitchPlan> planSwitch(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network,
                                const SwitchOptions &options = {});

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANSWITCH_H
