//===- PlayedPipeline.h - Reads a simulated plan's pipeline -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads the pipeline of a replica from a simulated plan: the seconds of its
// stages for every micro-batch, and the order of its items. So lower bounds and
// safety stocks are computed for any plan, whatever its origin.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLAYEDPIPELINE_H
#define DYNA_RUNTIME_PLANNER_PLAYEDPIPELINE_H

#include "runtime/planner/order/schedules/Schedules.h"
#include "runtime/sim/PlanTimes.h"

#include <vector>

namespace dyna {

struct PlayedPipeline {
  /// Problem of the stages' first ranks, without memory and limits. A message
  /// takes as long as the shortest one.
  PipelineProblem problem;
  /// An item lasts from its first instruction to its last, waits within included.
  StageOrders orders;
};

/// `work` and `times` are those of the plan; `microBatches` the numbers of the
/// replica's. Linear in its instructions and in the plan's transfers.
PlayedPipeline playedPipeline(const ExecutableGraph &graph,
                              const plan::Plan &plan, const PlanWork &work,
                              const PlanTimes &times, int replica,
                              const std::vector<int> &microBatches);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLAYEDPIPELINE_H
