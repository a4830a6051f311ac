//===- TimedPlans.h - Plans of the tiny model with costs --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_SIM_TIMEDPLANS_H
#define DYNA_TEST_RUNTIME_SIM_TIMEDPLANS_H

#include "runtime/base/text/Text.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/sim/PlanTimes.h"
#include "test/runtime/plan/TinyPlans.h"

namespace dyna {

/// Seconds per ten tokens of the three kinds; backward takes twice as long. What
/// goes between ranks takes what `cluster` says, by default nothing.
inline CostModel costsOf(const Model &model, double embedding, double block,
                         double head, double update = 0,
                         const std::string &cluster = "") {
  std::string text = "cluster { " + cluster + " }\n";
  for (auto [kind, seconds] :
       {std::pair("embedding", embedding), {"block", block}, {"head", head}})
    for (int tp : {1, 2})
      for (auto [direction, factor] :
           {std::pair("FORWARD", 1.0), {"BACKWARD", 2.0}, {"UPDATE", 0.0}})
        text += formatText(
            "entries { kind: \"%s\" tp: %d direction: %s points { %s "
            "seconds: %g } }\n",
            kind, tp, direction, factor > 0 ? "tokens: 10" : "",
            factor > 0 ? seconds * factor : update);
  auto table = CostTable::parse(text, "costs.txt");
  EXPECT_TRUE(table.isOk()) << table.status().message();
  return *CostModel::create(model, std::move(*table));
}

struct Timed {
  Timed(const std::string &strategy, const std::vector<int64_t> &lengths,
        const CostModel &costs, PlanOptions options)
      : planner(
            *ExecutableGraph::create(costs.model(), *parseStrategy(strategy)),
            costs),
        plan(*planner.training(lengths, 9, options)),
        times(*timePlan(planner.graph(), plan, costs)) {
    Status holds = verifyPlan(planner.graph(), plan, lengths, {});
    EXPECT_TRUE(holds.isOk()) << holds.message();
  }
  Planner planner;
  plan::Plan plan;
  PlanTimes times;
};

inline PlanOptions microBatchesOf(int64_t tokens) {
  PlanOptions options;
  options.maxTokensPerMicroBatch = tokens;
  options.schedule = Schedule::OneForwardOneBackward;
  return options;
}

inline const std::vector<int64_t> fourTens = {10, 10, 10, 10};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_SIM_TIMEDPLANS_H
