//===- PipelineTimesTest.cpp - Safety stock, and bounds of makespans ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PipelineBounds.h"
#include "test/runtime/planner/TimedOrders.h"

#include <gmock/gmock.h>

using namespace dyna;
using testing::ElementsAre;

namespace {

// DynaPipe, figures 11a and b. The first stage, whose forwards are always there,
// has no backward that waits.
TEST(PipelineTimesTest, SafetyStock) {
  for (double backward : {1.0, 2.0}) {
    PipelineProblem problem = even(4, 16);
    problem.backward.assign(4, std::vector<double>(16, backward));
    auto stockOf = [&](Schedule schedule) {
      std::vector<int> stocks;
      StageOrders orders = timed(*ruleOf(schedule).order(problem), problem);
      for (const SafetyStock &stock : safetyStockOf(orders, problem)) {
        stocks.push_back(stock.median);
        EXPECT_NEAR(stock.mean, stock.median, 0.1);
      }
      return stocks;
    };
    EXPECT_THAT(stockOf(Schedule::OneForwardOneBackward),
                ElementsAre(0, 0, 0, 0));
    // Seven are injected before the first comes back.
    EXPECT_THAT(stockOf(Schedule::Cyclic), ElementsAre(0, 1, 1, 1));
    EXPECT_THAT(stockOf(Schedule::Adaptive), ElementsAre(0, 1, 1, 1));
  }
}

// Weight gradients fill what 1F1B leaves idle: load bounds are met.
TEST(AdaptiveScheduleTest, MeetsTheBoundsOfEqualMicroBatches) {
  for (int p : {1, 2, 4, 8})
    for (int m : {1, 3, 8, 20}) {
      PipelineProblem problem = even(p, m);
      EXPECT_NEAR(boundPipeline(problem).load, 3.0 * (m + p - 1), 1e-6);
      EXPECT_NEAR(boundPipeline(problem).path, 3.0 * p, 1e-6);
      EXPECT_DOUBLE_EQ(makespanOf(adaptive(problem)), 3.0 * (m + p - 1));
      problem = even(p, m, true);
      EXPECT_NEAR(boundPipeline(problem).load, 3.0 * m + p - 1, 1e-6);
      EXPECT_NEAR(boundPipeline(problem).path, 2.0 * p + 1, 1e-6);
      problem.limits.assign(static_cast<size_t>(p), 2 * p + 1);
      double makespan = makespanOf(adaptive(problem));
      EXPECT_GE(makespan, boundPipeline(problem).seconds() * (1 - 1e-9));
      EXPECT_LE(makespan, 3.0 * (m + p - 1));
      if (m > 2 * p)
        EXPECT_LE(makespan, 3.0 * m + 2 * (p - 1));
    }
}

// Small micro-batches come early to the last stage and leave it late, but the others
// have long ways to go all the same.
TEST(PipelineBoundsTest, SmallOnesDoNotHideTheWayOfOthers) {
  PipelineProblem problem = even(3, 4);
  for (int s = 0; s < 3; ++s)
    for (int m = 1; m < 4; ++m) {
      problem.forward[s][m] = 10;
      problem.backward[s][m] = 20;
    }
  // Two stages there, all work of the large ones, and two stages back.
  EXPECT_NEAR(boundPipeline(problem).load, 20 + 3 * 30 + 40, 1e-6);
  EXPECT_GE(makespanOf(adaptive(problem)),
            boundPipeline(problem).seconds() * (1 - 1e-9));
}

// Each micro-batch is away from the first stage for the whole of its way.
TEST(PipelineBoundsTest, Memory) {
  PipelineProblem problem = even(4, 10);
  problem.limits.assign(4, 1);
  EXPECT_NEAR(boundPipeline(problem).memory, 10 * 12, 1e-6);
  EXPECT_DOUBLE_EQ(makespanOf(adaptive(problem)), 10 * 12);
  problem.links = chainOf(4, 1);
  EXPECT_NEAR(boundPipeline(problem).memory, 10 * 18, 1e-6);
  problem.limits.assign(4, 2);
  EXPECT_NEAR(boundPipeline(problem).memory, 10 * 9, 1e-6);
  EXPECT_THAT(boundPipeline(problem).bytes, testing::Each(1));
  // What stays for weight gradients may be more than what backward needs.
  problem.weight = problem.forward;
  problem.late = problem.kept;
  problem.late[2][7] = 5;
  EXPECT_THAT(boundPipeline(problem).bytes, ElementsAre(1, 1, 5, 1));
}

} // namespace
