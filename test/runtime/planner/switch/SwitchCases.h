//===- SwitchCases.h - Random switches, and what carries them out -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_SWITCH_SWITCHCASES_H
#define DYNA_TEST_RUNTIME_PLANNER_SWITCH_SWITCHCASES_H

#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/sim/SwitchNetwork.h"
#include "test/runtime/planner/Draw.h"

#include <string>
#include <vector>

namespace dyna {

/// Tensors between two random meshes of up to 16 ranks each, of any order of
/// axes, on other ranks and in another number: with uneven parts, rows dealt to
/// replicas, copied heads, tensors on two stages, vectors and scalars, some of
/// them to be delivered once.
struct SwitchCase {
  std::vector<SwitchTensor> tensors;
  SwitchNetwork network;
};
SwitchCase drawSwitch(Draw &draw);

/// Of 8 bytes a second within a node, and one between.
SwitchNetwork nodesOf(int nodes, int ranksPerNode);
/// All bytes on each of these ranks before and behind.
SwitchTensor bytesOn(std::vector<int> from, std::vector<int> to, int64_t bytes);

/// Empty where the test fails: there is a plan.
SwitchPlan planOf(const SwitchCase &one, const SwitchOptions &options = {});
/// What `checkSwitch` says; empty: nothing.
std::string refusalOf(const SwitchCase &one, const SwitchPlan &plan);

/// Carries a plan out, element by element, on arrays that hold every element's
/// number, without `checkSwitch`. The first thing that is wrong, or nothing.
std::string carryOut(const std::vector<SwitchTensor> &tensors, int ranks,
                     const SwitchPlan &plan);

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_SWITCH_SWITCHCASES_H
