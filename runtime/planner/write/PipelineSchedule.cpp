//===- PipelineSchedule.cpp - Orders work and messages --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/write/PipelineSchedule.h"

#include "runtime/planner/order/PipelineTimes.h"

#include <algorithm>
#include <limits>
#include <tuple>
#include <utility>

namespace dyna {
namespace {

void collectMessages(PipelineSchedule &schedule) {
  int stages = static_cast<int>(schedule.stages.size());
  // A stage starts arrived messages between items, and before it waits for
  // inputs.
  std::vector<std::vector<double>> between(stages);
  for (int s = 0; s < stages; ++s)
    for (const PipelineItem &item : schedule.stages[s])
      between[s].insert(between[s].end(), {item.start, item.inputs});
  auto takenBy = [&](int stage, double time) {
    const std::vector<double> &times = between[stage];
    auto found = std::lower_bound(times.begin(), times.end(), time);
    return found == times.end() ? std::numeric_limits<double>::infinity()
                                : *found;
  };
  for (int s = 0; s < stages; ++s)
    for (const PipelineItem &item : schedule.stages[s]) {
      if (item.kind == ItemKind::Weight)
        continue;
      const StageGraph &graph = schedule.graph;
      for (const StageLink &link :
           item.isForward() ? graph.outOf(s) : graph.into(s)) {
        if (item.isBackward() && !link.hasGradient)
          continue;
        const int to = item.isForward() ? link.to : link.from;
        schedule.messages.push_back({s, to, link.edge, item.microBatch,
                                     item.isBackward(), item.end,
                                     takenBy(to, item.end)});
      }
    }
  std::sort(schedule.messages.begin(), schedule.messages.end(),
            [](const PipelineMessage &a, const PipelineMessage &b) {
              return std::tie(a.time, a.from, a.microBatch, a.gradient,
                              a.edge) <
                     std::tie(b.time, b.from, b.microBatch, b.gradient, b.edge);
            });
}

} // namespace

StatusOr<StageOrders> orderItems(PipelineProblem problem,
                                 const PlanOptions &options, bool backward) {
  problem.inFlight = options.inFlight;
  DYNA_RETURN_IF_ERROR(StageGraph(problem).check());
  if (backward)
    return ruleOf(options.schedule).order(problem);
  StageOrders orders(problem.stages());
  for (auto &items : orders)
    for (int m = 0; m < problem.microBatches(); ++m)
      items.push_back({ItemKind::Forward, m});
  return orders;
}

StatusOr<PipelineSchedule> orderMessages(StageOrders orders,
                                         const PipelineProblem &problem,
                                         const PlanOptions &options,
                                         bool backward) {
  const ScheduleRule &rule = ruleOf(options.schedule);
  ClockOptions clock;
  if (backward)
    clock.fillsGaps = rule.adapts;
  else
    // Without backwards nothing slows a fast stage down. One message in work
    // and one after it keep the next stage busy. Memory for received inputs
    // then does not grow with the number of micro-batches.
    clock.sentAhead = rule.waitsForSends ? 1 : 2;
  PipelineSchedule schedule;
  schedule.stages = std::move(orders);
  schedule.graph = StageGraph(problem);
  DYNA_RETURN_IF_ERROR(timeItems(schedule.stages, problem, clock));
  collectMessages(schedule);
  return schedule;
}

StatusOr<std::vector<PipelineSchedule>>
orderMirrored(std::vector<StageOrders> orders,
              const std::vector<PipelineProblem> &problems,
              const PlanOptions &options) {
  ClockOptions clock;
  clock.fillsGaps = ruleOf(options.schedule).adapts;
  std::vector<PipelineSchedule> schedules(2);
  for (size_t i = 0; i < 2; ++i) {
    schedules[i].stages = std::move(orders[i]);
    schedules[i].graph = StageGraph(problems[i]);
  }
  DYNA_RETURN_IF_ERROR(timeMirrored({schedules[0].stages, problems[0]},
                                    {schedules[1].stages, problems[1]}, clock));
  for (PipelineSchedule &schedule : schedules)
    collectMessages(schedule);
  return schedules;
}

StatusOr<PipelineSchedule> schedulePipeline(const PipelineProblem &problem,
                                            const PlanOptions &options,
                                            bool backward) {
  DYNA_ASSIGN_OR_RETURN(auto orders, orderItems(problem, options, backward));
  return orderMessages(std::move(orders), problem, options, backward);
}

} // namespace dyna
