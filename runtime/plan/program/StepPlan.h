//===- StepPlan.h - A step of several graphs --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step whose samples go to several graphs has phases, each the plan of one
// graph for its own samples. One graph is *home*: it alone has masters and
// optimizer state, and its phase is the last, in which all is updated. What the
// others read comes to them by a *switch*, from home and from the graph of the
// phase before; their gradients, reduced over their holders, go home, where each
// element is added to what one rank has of it: the home's own reduction sums
// that over all of them.
//
//     home = c       phase 0: a          phase 1: b          phase 2: c
//     values         c -> a              c, a -> b           -
//     micro-batches  of short samples    of middle ones      of long ones
//     gradients      a -> c              b -> c              reduced, updated
//
// Switches go in buckets (SwitchPlan.h). What comes to the first phase is started
// at the front of its programs. What comes to the next phase, and the gradients
// of this one, start in this one's last backward: each bucket on all its ranks
// where all of them can be at one time, once what they send is there. The waits
// lie before what needs the values, and, of gradients, in the phase behind.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STEPPLAN_H
#define DYNA_RUNTIME_PLAN_STEPPLAN_H

#include "runtime/plan/program/Plan.h"

namespace dyna::plan {

struct Phase {
  /// Of its samples, by numbers of its own; `targetTokens` counts those of the
  /// whole mini-batch.
  Plan plan;
  /// The numbers in the mini-batch of the plan's samples.
  std::vector<int64_t> samples;
};

struct StepPlan {
  std::vector<Phase> phases; ///< in the order in which they run; at least one

  int phaseCount() const { return static_cast<int>(phases.size()); }
};

} // namespace dyna::plan

#endif // DYNA_RUNTIME_PLAN_STEPPLAN_H
