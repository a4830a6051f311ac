//===- Adaptive.cpp - By costs and memory -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Memory-aware adaptive scheduling (DynaPipe, section 5), on a simulated clock
// instead of in cycles: a stage takes the next backward as soon as it can, and
// injects forwards as far as its memory goes, in an order that is searched
// (OrderSearch.h). The limit is tested for every micro-batch, the first one too.
// Without limits no stage is further ahead than under the cyclic schedule.
//
// Micro-batches that follow each other, such as slices, keep their order: they run in
// cycles within the memory there is, or by 1F1B.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/schedules/CyclicOrders.h"
#include "runtime/planner/order/schedules/OrderSearch.h"
#include "runtime/planner/order/schedules/PipelineMemory.h"
#include "runtime/planner/order/schedules/StageGraph.h"

#include <numeric>

namespace dyna {
namespace {

/// Orders micro-batches some of which follow each other: cycles in the memory there is,
/// or 1F1B if that fits and is shorter.
StatusOr<StageOrders> orderInTurn(const PipelineProblem &problem) {
  std::vector<int> injected(problem.microBatches());
  std::iota(injected.begin(), injected.end(), 0);
  std::vector<StageOrders> all = {cyclicOrders(problem, injected)};
  auto inTurn = ruleOf(Schedule::OneForwardOneBackward).order(problem);
  DYNA_RETURN_IF_ERROR(inTurn.status());
  all.push_back(*std::move(inTurn));
  ClockOptions clock;
  clock.fillsGaps = true;
  for (StageOrders &orders : all) {
    if (problem.splitsBackward())
      addWeights(orders);
    DYNA_RETURN_IF_ERROR(timeItems(orders, problem, clock));
  }
  const std::vector<int64_t> peaks = peakBytesOf(all[1], problem);
  bool fits = true;
  for (int s = 0; s < problem.stages() && !problem.limits.empty(); ++s)
    fits &= peaks[s] <= problem.limits[s];
  return fits && makespanOf(all[1]) < makespanOf(all[0]) ? all[1] : all[0];
}

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  DYNA_RETURN_IF_ERROR(checkMemory(problem));
  const StageGraph graph(problem);
  DYNA_RETURN_IF_ERROR(graph.check());
  if (!problem.previous.empty())
    return orderInTurn(problem);
  const int levels = graph.levels();
  std::vector<int> most;
  for (int s = 0; s < problem.stages(); ++s)
    most.push_back(
        problem.limits.empty()
            ? cyclicMostKept({levels - graph.depth(s), levels,
                              problem.microBatches(), problem.inFlight})
            : problem.mostKeptOf(s));
  return searchOrders(problem, most);
}

} // namespace

extern const ScheduleRule scheduleAdaptive = {
    "adaptive", "an order found by simulation in the memory there is",
    order,      cyclicMostKept,
    false,      false,
    true,       true};

} // namespace dyna
