//===- PlanSwitch.h - Who sends what when strategies change -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans how tensors come from where they are to where they have to be, between
// any two layouts and any two sets of ranks, on nodes that are faster inside
// than between each other. The same task as HotSPa's Algorithm 1 (section 5.2);
// what is different here is that a node is sent one copy, that the ports which
// take it are chosen together for all tensors, receivers as well as senders,
// and that ranks with nothing to do lend theirs. docs/switching.md has the
// algorithm and what it was measured to reach.
//
// Planning has three steps, each a file of routes/. Elements become lots that are had and
// needed alike (Lots.h). Lots get ways over the ports (Routes.h). Ways are dealt to the
// tensors' boxes in buckets (DealRoutes.h). Ways without detours are tried first. If
// others save time at the busiest port, both plans are simulated by their messages. At the
// end buckets that hand something on are put behind others as far as that saves time.
// Algorithm 1 replaces the plan if it is faster within the same limits.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANSWITCH_H
#define DYNA_RUNTIME_PLANNER_PLANSWITCH_H

#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/planner/switch/SwitchOptions.h"
#include "runtime/sim/SwitchNetwork.h"

namespace dyna {

/// `tensors` in the order in which they are needed. The plan passes
/// `checkSwitch` for `network.ranks`. The same tensors, network and options give
/// the same plan. Fails where nobody has what is needed, or a tensor lies on
/// ranks that the network does not have. Complexity: that of the three steps.
StatusOr<SwitchPlan> planSwitch(const std::vector<SwitchTensor> &tensors,
                                const SwitchNetwork &network,
                                const SwitchOptions &options = {});

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANSWITCH_H
