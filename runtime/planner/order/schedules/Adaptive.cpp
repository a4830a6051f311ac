//===- Adaptive.cpp - Orders by costs and memory ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Orders items by memory-aware adaptive scheduling (DynaPipe, section 5), on a
// simulated clock instead of in cycles. A stage runs the next backward as soon
// as it can. It injects forwards as far as its memory permits, in an order that
// is searched (OrderSearch.h). The limit is tested for every micro-batch, the
// first one too. Without limits no stage is further ahead than under the cyclic
// schedule.
//
// Micro-batches that follow each other, such as slices, keep their order.
// Orders of such chains are searched too, and compared with cycles and 1F1B.
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

/// Items that a search of chains simulates behind its simple orders. A step has many
/// slices, and is planned while the one before it runs.
constexpr int64_t mostChainItems = 20000;

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

/// Returns the micro-batches of the longest chain.
int longestChain(const PipelineProblem &problem) {
  std::vector<int> length(problem.microBatches(), 0);
  int longest = 1;
  // The slices of a chain may have any numbers.
  for (int m = 0; m < problem.microBatches(); ++m) {
    int count = 0;
    for (int at = m; at >= 0 && count <= problem.microBatches();
         at = problem.previous[at], ++count)
      if (length[at] > 0) {
        count += length[at];
        break;
      }
    length[m] = count;
    longest = std::max(longest, count);
  }
  return longest;
}

/// Orders chains: the best of a search, cycles and 1F1B.
StatusOr<StageOrders> orderChains(const PipelineProblem &problem,
                                  std::vector<int> most) {
  DYNA_ASSIGN_OR_RETURN(StageOrders inTurn, orderInTurn(problem));
  if (problem.searchItems == 0)
    return inTurn;
  // A stage runs a whole chain forward before the first backward of the chain.
  for (int &count : most)
    count += longestChain(problem) - 1;
  PipelineProblem brief = problem;
  brief.searchItems = std::min<int64_t>(problem.searchItems, mostChainItems);
  StageOrders searched = searchOrders(brief, most);
  if (searched.empty())
    return inTurn;
  ClockOptions clock;
  clock.fillsGaps = true;
  DYNA_RETURN_IF_ERROR(timeItems(searched, problem, clock));
  return makespanOf(searched) < makespanOf(inTurn) ? searched : inTurn;
}

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  DYNA_RETURN_IF_ERROR(checkMemory(problem));
  const StageGraph graph(problem);
  DYNA_RETURN_IF_ERROR(graph.check());
  const int levels = graph.levels();
  std::vector<int> most;
  for (int s = 0; s < problem.stages(); ++s)
    most.push_back(
        problem.limits.empty()
            ? cyclicMostKept({levels - graph.depth(s), levels,
                              problem.microBatches(), problem.inFlight})
            : problem.mostKeptOf(s));
  return problem.previous.empty() ? searchOrders(problem, most)
                                  : orderChains(problem, std::move(most));
}

} // namespace

extern const ScheduleRule scheduleAdaptive = {
    "adaptive", "an order found by simulation in the memory there is",
    order,      cyclicMostKept,
    false,      false,
    true,       true};

} // namespace dyna
