//===- StepPlan.h - Represents the phases of one step -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step has one phase for each graph that gets samples of the mini-batch. A phase
// is the plan of its graph for these samples. One graph is *home*: it alone has
// masters and optimizer state. Its phase is the last one and updates all parameters.
//
// A *switch* brings the values that another graph reads, from home and from the
// graph of the phase before. The gradients of that graph are reduced over their
// holders and go home by another switch. There each element is added to the copy of
// one rank, and home's own reduction sums it over all ranks.
//
//     home = c       phase 0: a          phase 1: b          phase 2: c
//     values         c -> a              c, a -> b           -
//     micro-batches  of short samples    of middle ones      of long ones
//     gradients      a -> c              b -> c              reduced, updated
//
// Switches go in buckets (SwitchPlan.h). The values of the first phase start at the
// front of its programs. The values of the next phase and the gradients of this one
// start in this phase's last backward. A bucket starts on all its ranks at a point
// that all of them can reach at one time. By then the data to send is there. Waits
// for values lie before the first use. Waits for gradients lie in the next phase.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STEPPLAN_H
#define DYNA_RUNTIME_PLAN_STEPPLAN_H

#include "runtime/plan/program/Plan.h"

namespace dyna::plan {

struct Phase {
  /// Plan of the phase's samples, which it numbers from 0. `targetTokens` counts the
  /// targets of the whole mini-batch.
  Plan plan;
  /// Numbers of these samples in the mini-batch.
  std::vector<int64_t> samples;
};

struct StepPlan {
  std::vector<Phase> phases; ///< in the order of execution; at least one

  int phaseCount() const { return static_cast<int>(phases.size()); }
};

} // namespace dyna::plan

#endif // DYNA_RUNTIME_PLAN_STEPPLAN_H
