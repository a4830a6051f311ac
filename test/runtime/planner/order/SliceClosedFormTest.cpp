//===- SliceClosedFormTest.cpp - The formula against clocks ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/slice/SliceTokens.h"
#include "test/runtime/planner/slice/SliceCases.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <queue>

using namespace dyna;

namespace {

/// A pipeline of equal stages, simulated by events: each stage is a server with a
/// queue, and what it has done arrives at the next one. Forwards go up in order. When
/// the last one has left the last stage, backwards go down, the last slice first.
double simulate(int stages, const std::vector<double> &forward,
                const std::vector<double> &backward) {
  struct Arrival {
    double time;
    int hop, slice;
    bool operator<(const Arrival &other) const {
      return time != other.time ? time > other.time
             : hop != other.hop ? hop < other.hop
                                : slice > other.slice;
    }
  };
  const int slices = static_cast<int>(forward.size());
  std::vector<double> freeFrom(stages, 0);
  std::priority_queue<Arrival> arrivals;
  double end = 0;
  auto run = [&](const std::vector<double> &seconds) {
    while (!arrivals.empty()) {
      Arrival next = arrivals.top();
      arrivals.pop();
      freeFrom[next.hop] =
          std::max(freeFrom[next.hop], next.time) + seconds[next.slice];
      end = std::max(end, freeFrom[next.hop]);
      if (next.hop + 1 < stages)
        arrivals.push({freeFrom[next.hop], next.hop + 1, next.slice});
    }
  };
  for (int slice = 0; slice < slices; ++slice)
    arrivals.push({0, 0, slice});
  run(forward);
  std::reverse(freeFrom.begin(), freeFrom.end());
  std::vector<double> reversed(backward.rbegin(), backward.rend());
  for (int slice = 0; slice < slices; ++slice)
    arrivals.push({end, 0, slice});
  run(reversed);
  return end;
}

/// The planner's clock: GPipe, and the same with slices of one sample, whose backwards
/// run in reverse.
void expectClocks(int stages, const std::vector<double> &forward,
                  const std::vector<double> &backward, double expected) {
  const int slices = static_cast<int>(forward.size());
  PipelineProblem problem;
  problem.forward.assign(stages, forward);
  problem.backward.assign(stages, backward);
  problem.inFlight = slices;
  auto orders = ruleOf(Schedule::GPipe).order(problem);
  ASSERT_TRUE(orders.isOk()) << orders.status().message();
  Status timed = timeItems(*orders, problem, {});
  ASSERT_TRUE(timed.isOk()) << timed.message();
  EXPECT_NEAR(makespanOf(*orders), expected, 1e-9 * expected);
  for (int slice = 0; slice < slices; ++slice)
    problem.previous.push_back(slice - 1);
  StageOrders reversed = *orders;
  for (auto &items : reversed)
    std::reverse(items.begin() + slices, items.end());
  timed = timeItems(reversed, problem, {});
  ASSERT_TRUE(timed.isOk()) << timed.message();
  EXPECT_NEAR(makespanOf(reversed), expected, 1e-9 * expected);
}

TEST(SliceClosedFormTest, EqualsSimulatedPipelines) {
  Draw draw(1);
  for (int round = 0; round < 2000; ++round) {
    const int stages = 1 + draw.below(12), slices = 1 + draw.below(14);
    std::vector<double> forward, backward;
    double sum = 0;
    for (int slice = 0; slice < slices; ++slice) {
      forward.push_back(1 + draw.below(round % 2 ? 3 : 1000));
      backward.push_back(1 + draw.below(round % 3 ? 2000 : 3));
      sum += forward.back() + backward.back();
    }
    const double expected = pipelineSeconds(
        stages, sum,
        *std::max_element(forward.begin(), forward.end()) +
            *std::max_element(backward.begin(), backward.end()));
    ASSERT_EQ(simulate(stages, forward, backward), expected);
    expectClocks(stages, forward, backward, expected);
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
}

/// The objective of what is found is the time of the pipeline, joint with bundles.
TEST(SliceClosedFormTest, EqualsSimulatedPlans) {
  Draw draw(2);
  for (int round = 0; round < 200; ++round) {
    SliceProblem problem;
    problem.costs = drawCosts(round, CostKind::Monotone, 1);
    problem.options.stages = 1 + draw.below(9);
    problem.options.mostJoined = 2;
    problem.lengths = {1 + draw.below(30), 1 + draw.below(30), 5, 5, 3, 2};
    problem.bundles = {{4, 5}};
    auto plan = sliceTokens(problem);
    ASSERT_TRUE(plan.isOk());
    std::vector<double> forward, backward;
    auto add = [&](const SliceCost &cost) {
      forward.push_back(cost.forward);
      backward.push_back(cost.backward);
    };
    for (const SampleCut &cut : plan->cuts) {
      SliceShape shape;
      shape.samples = static_cast<int64_t>(cut.samples.size());
      for (const TokenSlice &slice : cut.slices) {
        shape.tokens = slice.tokens;
        add(problem.costs.slice(shape));
        shape.begin += slice.tokens;
      }
    }
    add(problem.costs.bundle({3, 2}, 0));
    const double simulated =
        simulate(problem.options.stages, forward, backward);
    EXPECT_NEAR(plan->objective, simulated, 1e-12 * simulated);
    expectClocks(problem.options.stages, forward, backward, plan->objective);
  }
}

/// One cost for both directions is a lower bound, and can be far below.
TEST(SliceClosedFormTest, OneCostIsALowerBound) {
  double largest = 1;
  for (int round = 0; round < 400; ++round) {
    SliceProblem problem;
    problem.costs = drawCosts(round, CostKind::Reals, 1);
    problem.lengths = {12};
    problem.options.stages = 8;
    auto apart = sliceTokens(problem);
    problem.options.joinsDirections = true;
    auto joined = sliceTokens(problem);
    ASSERT_TRUE(apart.isOk() && joined.isOk());
    EXPECT_LE(joined->objective, apart->objective);
    largest = std::max(largest, apart->objective / joined->objective);
  }
  EXPECT_GE(largest, 1.1);
}

} // namespace
