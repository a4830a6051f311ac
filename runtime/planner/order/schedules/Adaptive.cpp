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
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/CyclicOrders.h"
#include "runtime/planner/order/schedules/OrderSearch.h"
#include "runtime/planner/order/schedules/StageGraph.h"

namespace dyna {
namespace {

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  DYNA_RETURN_IF_ERROR(checkMemory(problem));
  const StageGraph graph(problem);
  DYNA_RETURN_IF_ERROR(graph.check());
  if (!problem.previous.empty())
    return Status::invalidArgument(
        "the adaptive schedule changes the order of micro-batches, but some of "
        "these follow each other: use 1f1b or gpipe");
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
