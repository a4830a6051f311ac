//===- RandomPlan.h - Plans and clusters by chance --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_SIM_RANDOMPLAN_H
#define DYNA_TEST_RUNTIME_SIM_RANDOMPLAN_H

#include "runtime/abi/Random.h"
#include "test/runtime/plan/PlanEditor.h"
#include "test/runtime/sim/TimedPlans.h"

namespace dyna {

/// Random plans on clusters of one and two devices a node.
struct RandomPlan {
  /// `slowness`: of links.
  explicit RandomPlan(uint64_t seed, int slowness = 1)
      : state(seed * 1000), costs(randomCosts(slowness)),
        timed(strategies[seed % strategies.size()], randomLengths(), costs,
              randomOptions()),
        work(timed.planner.graph(), changedPlan(), costs) {}

  int below(uint64_t n) { return static_cast<int>(dyna_mix64(state++) % n); }
  CostModel randomCosts(int slowness) {
    auto link = [&](const char *name, int most) {
      return formatText("%s { latency_seconds: %g bytes_per_second: %g } ",
                        name, 0.5 * below(4),
                        20.0 * (1 + below(most)) / slowness);
    };
    std::string cluster = formatText("devices_per_node: %d ", 1 + below(3));
    cluster += link("inside", 500);
    cluster += link("between", 50);
    return costsOf(modelWithDegrees(), 1 + below(5), 1 + below(5), 1 + below(5),
                   1 + below(3), cluster);
  }
  std::vector<int64_t> randomLengths() {
    std::vector<int64_t> lengths;
    for (int i = 2 + below(10); i > 0; --i)
      lengths.push_back(10 * (1 + below(4)));
    return lengths;
  }
  PlanOptions randomOptions() {
    PlanOptions options = microBatchesOf(40);
    options.schedule = allSchedules()[below(allSchedules().size())];
    options.inFlight = 1 + below(4);
    options.splitBackward = below(2) == 1;
    return options;
  }

  /// Ranks start what some layers share parameter by parameter.
  const plan::Plan &changedPlan() {
    const ExecutableGraph &graph = timed.planner.graph();
    for (int layer = 0; layer < graph.model().layers(); ++layer)
      if (below(3) == 0)
        for (int rank = 0; rank < graph.ranks(); ++rank)
          startOneByOne(graph.replicaView(rank), layer, timed.plan.ranks[rank]);
    return timed.plan;
  }

  PlanTimes play(const SimulationOptions &options) const {
    return *playPlan(work, options);
  }

  static inline const std::vector<const char *> strategies = {
      "pp=2,layers=3+2",          "dp=2,pp=2,layers=3+2,zero=1",
      "pp=4,layers=1+2+1+1",      "dp=2,tp=2,zero=1",
      "tp=2,pp=2,layers=3+2",     "dp=3,pp=3,layers=2+2+1",
      "dp=2,tp=2,pp=2,layers=2+3"};
  uint64_t state;
  CostModel costs;
  Timed timed;
  PlanWork work;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_SIM_RANDOMPLAN_H
