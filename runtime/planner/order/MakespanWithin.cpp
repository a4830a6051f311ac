//===- MakespanWithin.cpp - Computes makespans within memory --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/MakespanWithin.h"

#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/schedules/OrderSearch.h"
#include "runtime/planner/order/schedules/PipelineMemory.h"

#include <algorithm>
#include <limits>
#include <numeric>

namespace dyna {

static constexpr double never = std::numeric_limits<double>::infinity();

/// Returns the time of the faster of two orders: by number, and shortest first.
/// Micro-batches that follow each other are only tried by number, with
/// backwards in reverse.
static double dispatchTime(const PipelineProblem &problem) {
  const int count = problem.microBatches();
  std::vector<int> byNumber(count);
  std::iota(byNumber.begin(), byNumber.end(), 0);
  std::vector<int> bySize = byNumber;
  std::vector<double> seconds = totalSeconds(problem);
  std::sort(bySize.begin(), bySize.end(), [&](int a, int b) {
    return seconds[a] != seconds[b] ? seconds[a] < seconds[b] : a < b;
  });
  std::vector<int> most;
  for (int s = 0; s < problem.stages(); ++s)
    most.push_back(problem.mostKeptOf(s));
  OrderSimulator simulator(problem, most);
  simulator.setRule({});
  if (!problem.previous.empty())
    return simulator.evaluate({byNumber, BackwardOrder(problem).sequence},
                              never);
  double best = simulator.evaluate({byNumber, byNumber}, never);
  return std::min(best, simulator.evaluate({bySize, bySize}, best));
}

/// Returns true if the orders fit the limits. `beside`: what each backward needs beside
/// the kept bytes. Weight gradients must not be items of their own.
static bool fitLimits(const StageOrders &orders, const PipelineProblem &problem,
                      const PipelineProblem::Bytes &beside) {
  for (size_t stage = 0; stage < problem.limits.size(); ++stage) {
    const int s = static_cast<int>(stage);
    int64_t bytes = 0, peak = 0;
    for (const PipelineItem &item : orders[s]) {
      const int m = item.microBatch;
      if (item.isForward())
        bytes += problem.keptBytes(s, m);
      else
        peak = std::max(peak, bytes + beside[s][m]);
      if (item.isBackward())
        bytes += problem.lateBytes(s, m) - problem.keptBytes(s, m);
      peak = std::max(peak, bytes);
    }
    if (peak > problem.limits[s])
      return false;
  }
  return true;
}

double makespanWithin(const PipelineProblem &problem, Schedule schedule,
                      const PipelineProblem::Bytes *beside) {
  if (problem.microBatches() == 0)
    return 0;
  if (!checkMemory(problem).isOk())
    return never;
  const ScheduleRule &rule = ruleOf(schedule);
  if (rule.adapts)
    return dispatchTime(problem);
  StatusOr<StageOrders> orders = rule.order(problem);
  if (!orders.isOk() || !timeItems(*orders, problem, {}).isOk())
    return never;
  if (beside)
    return fitLimits(*orders, problem, *beside) ? makespanOf(*orders) : never;
  std::vector<int64_t> peaks = peakBytesOf(*orders, problem);
  for (size_t s = 0; s < problem.limits.size(); ++s)
    if (peaks[s] > problem.limits[s])
      return never;
  return makespanOf(*orders);
}

} // namespace dyna
