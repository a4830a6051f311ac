//===- PlanTimes.h - What a plan takes, before it runs -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plays a plan with the costs of its layers' functions and of the links between
// ranks: every rank carries out its instructions one after another, and ranks
// that exchange inside a function, or combine norms, meet there. A message, or an
// exchange of parameters, begins when all its ranks have started it; a wait ends
// with it. Messages of one rank to another in one direction go one after another;
// else links are not shared.
//
// What no costs exist for takes no time: loads, norms' own sums and casts.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_PLANTIMES_H
#define DYNA_RUNTIME_SIM_PLANTIMES_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/ExecutableGraph.h"
#include "runtime/sim/TaskGraph.h"

#include <vector>

namespace dyna {

struct RankTimes {
  std::vector<TaskTime> instructions; ///< as many as the rank's program has
  double busy = 0;                    ///< seconds in functions
};

struct PlanTimes {
  double makespan = 0; ///< until the last rank has ended
  std::vector<RankTimes> ranks;

  /// Seconds in which a rank waits for others, or has ended before them.
  double idle(int rank) const { return makespan - ranks[rank].busy; }
};

/// `plan` is one that `verifyPlan` accepts for the graph; of others, those
/// whose ranks wait for each other are refused. O(n log n) in instructions.
StatusOr<PlanTimes> timePlan(const ExecutableGraph &graph,
                             const plan::Plan &plan, const CostModel &costs);

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_PLANTIMES_H
