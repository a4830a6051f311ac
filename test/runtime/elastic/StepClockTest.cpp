//===- StepClockTest.cpp - Simulated cuts beside plans and all cuts -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/decide/MoveDecider.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/PlayedPipeline.h"
#include "test/runtime/elastic/AllCuts.h"
#include "test/runtime/executor/TinyModel.h"

#include <gmock/gmock.h>

#include <cmath>
#include <numeric>
#include <optional>

using namespace dyna;
using testing::ElementsAre;

namespace {

/// Layers that take so long in forward, and twice as long in backward.
StepWork workOf(const std::vector<std::vector<double>> &forward) {
  StepWork work;
  work.layers.forward = work.layers.backward = forward;
  for (std::vector<double> &row : work.layers.backward)
    for (double &seconds : row)
      seconds *= 2;
  return work;
}

TEST(StepClockTest, EqualMicroBatchesTakeTheFormula) {
  const StepClock clock(workOf({{1, 1, 1}, {1, 1, 1}, {1, 1, 1}, {1, 1, 1}}));
  EXPECT_NEAR(clock.seconds({2, 2}), 12 + 2 * 6, 1e-6);
  EXPECT_NEAR(clock.seconds({1, 3}), 12 + 2 * 9, 1e-6);
  EXPECT_EQ(clock.items(2), 12);
  // The busiest stage, behind the first layer and before it.
  EXPECT_NEAR(clock.bound({1, 3}), 3 * 9 + 3, 1e-6);
  EXPECT_NEAR(clock.bound({3, 1}), 3 * 9, 1e-6);
}

TEST(StepClockTest, WaitsOfLinksAreLoad) {
  const StepClock clock(workOf({{1, 1}, {1, 1}}), {0.5, 1});
  EXPECT_NEAR(clock.seconds({1, 1}), 3.5 + 4 + 4, 1e-6);
  EXPECT_NEAR(clock.bound({1, 1}), 3 + 8, 1e-6);
}

class PlansTest : public testing::Test {
protected:
  static Model model() {
    TinyOptions options;
    options.blocks = 6;
    options.hidden = 60;
    return *Model::create(tinyManifest(options));
  }

  static CostModel costsOf(const Model &model) {
    CostTable table = *CostTable::parse(
        "device { f64_flops: 1e9 f32_flops: 1e9 bf16_flops: 1e9 "
        "bytes_per_second: 1e12 launch_seconds: 1e-6 } cluster {}",
        "costs");
    table.dropLinks();
    return *CostModel::create(model, std::move(table));
  }

  /// Means of a layer's seconds over all micro-batches.
  static std::vector<double> meansOf(const Model &model, const CostModel &costs,
                                     const Strategy &strategy,
                                     const plan::Plan &plan,
                                     const PlanOptions &options) {
    Strategy apart = strategy;
    apart.pp = model.layers();
    apart.layers.assign(model.layers(), 1);
    const auto graph = *ExecutableGraph::create(model, apart);
    std::vector<int> all(plan.microBatches.size());
    std::iota(all.begin(), all.end(), 0);
    const PipelineProblem problem =
        estimateStages(graph, costs, plan, all, options);
    std::vector<double> means;
    for (int l = 0; l < model.layers(); ++l)
      means.push_back((std::accumulate(problem.forward[l].begin(),
                                       problem.forward[l].end(), 0.0) +
                       std::accumulate(problem.backward[l].begin(),
                                       problem.backward[l].end(), 0.0)) /
                      static_cast<double>(all.size()));
    return means;
  }
};

// A clock of one cut times all others as whole plans of them are simulated.
TEST_F(PlansTest, CutsTakeWhatTheirPlansTake) {
  const Model tiny = model();
  const CostModel costs = costsOf(tiny);
  const std::vector<int64_t> lengths = {40, 13, 25, 7, 31, 18, 22, 40, 9};
  for (Schedule schedule : {Schedule::OneForwardOneBackward, Schedule::GPipe,
                            Schedule::Cyclic, Schedule::Sequential}) {
    PlanOptions options;
    options.maxTokensPerMicroBatch = 40;
    options.schedule = schedule;
    options.recompute = {plan::RECOMPUTE_FULL};
    std::optional<StepClock> clock;
    std::vector<plan::MicroBatch> microBatches;
    for (const char *text : {"pp=3,layers=4+2+2", "pp=3,layers=1+1+6",
                             "pp=3,layers=2+3+3", "pp=3,layers=6+1+1"}) {
      SCOPED_TRACE(text);
      const Strategy strategy = *parseStrategy(text);
      const auto graph = *ExecutableGraph::create(tiny, strategy);
      const Planner planner(graph, costs);
      // Planners may cut other micro-batches for another cut.
      plan::Plan plan = *planner.cut(lengths, 205, options, /*trains=*/true);
      if (!clock)
        microBatches = plan.microBatches;
      plan.microBatches = microBatches;
      plan = *planner.orderCommunication(
          *planner.schedule(plan, options, /*trains=*/true), options);
      if (!clock)
        clock.emplace(*stepWork(costs, strategy, plan.microBatches, options,
                                meansOf(tiny, costs, strategy, plan, options)));
      const PlanWork work(graph, plan, costs);
      std::vector<int> all(plan.microBatches.size());
      std::iota(all.begin(), all.end(), 0);
      const double played = makespanOf(
          playedPipeline(graph, plan, work, *playPlan(work), 0, all).orders);
      EXPECT_NEAR(clock->seconds(strategy.layers) / played, 1, 1e-6);
      EXPECT_LE(clock->bound(strategy.layers), played * (1 + 1e-9));
    }
  }
}

TEST_F(PlansTest, LayersTakeWhatWasMeasured) {
  const Model tiny = model();
  const CostModel costs = costsOf(tiny);
  PlanOptions options;
  options.maxTokensPerMicroBatch = 20;
  // The second replica has more.
  const Strategy strategy = *parseStrategy("dp=2,pp=2,layers=4+4");
  plan::Plan plan;
  for (int64_t length : {10, 10, 20, 20}) {
    plan::MicroBatch &one = plan.microBatches.emplace_back();
    one.segments.push_back({0, 0, length});
    one.replica = length > 10 ? 1 : 0;
  }
  const std::vector<double> measured = {8, 1, 2, 3, 4, 5, 6, 7};
  const StepWork work =
      *stepWork(costs, strategy, plan.microBatches, options, measured);
  ASSERT_EQ(work.layers.microBatches(), 2);
  for (size_t l = 0; l < measured.size(); ++l) {
    const double each = work.layers.forward[l][0] + work.layers.backward[l][0];
    EXPECT_EQ(work.layers.forward[l][0], work.layers.forward[l][1]);
    EXPECT_GT(each, measured[l]);     // more tokens than the mean
    EXPECT_LT(each, 2 * measured[l]); // the short ones take some
    EXPECT_GT(work.layers.backward[l][0], 0);
  }
}

// Schedules that fill gaps have three kinds of items.
TEST(StepClockTest, ItemsAreTimedAsByThePlanner) {
  Draw draw(3);
  for (int round = 0; round < 200; ++round) {
    const int stages = 1 + draw.below(5), count = 1 + draw.below(7);
    const bool splits = draw.below(2), recomputes = draw.below(2);
    StepWork work;
    work.schedule = allSchedules()[static_cast<size_t>(
        draw.below(static_cast<int>(allSchedules().size())))];
    work.inFlight = 1 + draw.below(3);
    const bool adapts = ruleOf(work.schedule).adapts;
    auto rows = [&](int least, int most) {
      PipelineProblem::Seconds table(stages);
      for (std::vector<double> &row : table)
        for (int m = 0; m < count; ++m)
          row.push_back(least + draw.below(most - least));
      return table;
    };
    work.layers.forward = rows(1, 9);
    work.layers.backward = rows(9, 20);
    if (adapts && splits)
      work.layers.weight = rows(1, 4);
    if (adapts && recomputes)
      work.layers.recompute = rows(0, 4);
    PipelineProblem problem = work.layers;
    problem.inFlight = work.inFlight;
    problem.searchItems = 0;
    StageOrders orders = *ruleOf(work.schedule).order(problem);
    ClockOptions options;
    options.fillsGaps = adapts;
    ASSERT_TRUE(timeItems(orders, problem, options).isOk());
    const std::vector<int> cut(stages, 1);
    const StepClock clock(work);
    EXPECT_NEAR(clock.seconds(cut) / makespanOf(orders), 1, 1e-7) << round;
    EXPECT_LE(clock.bound(cut), clock.seconds(cut) * (1 + 1e-9)) << round;
  }
}

/// Random layers whose micro-batches differ.
StepWork drawWork(int layers, int microBatches, Draw &draw) {
  std::vector<std::vector<double>> forward(layers);
  for (std::vector<double> &row : forward) {
    const int most = 1 + draw.below(20);
    for (int m = 0; m < microBatches; ++m)
      row.push_back(1 + draw.below(most));
  }
  StepWork work = workOf(forward);
  const Schedule schedules[] = {Schedule::OneForwardOneBackward,
                                Schedule::GPipe, Schedule::Cyclic};
  work.schedule = schedules[draw.below(3)];
  work.inFlight = 1 + draw.below(4);
  return work;
}

MoveProblem problemOf(const StepWork &work, const std::vector<int> &cut,
                      Draw &draw) {
  MoveProblem problem;
  for (const std::vector<double> &row : work.layers.forward) {
    problem.seconds.push_back(3 * std::accumulate(row.begin(), row.end(), 0.0) /
                              static_cast<double>(row.size()));
    problem.stateBytes.push_back(1 + draw.below(50));
  }
  problem.microBatches = work.layers.microBatches();
  problem.cut = cut;
  problem.stepsLeft = draw.below(40);
  problem.price = {static_cast<double>(draw.below(100)), 0, 0,
                   static_cast<double>(draw.below(4))};
  return problem;
}

double excess(const MoveProblem &problem, const WeighedMove &move) {
  return move.gainSeconds - (1 + problem.test.margin) * move.priceSeconds;
}

TEST(SimulatedMoveTest, IsThatOfAllCuts) {
  Draw draw(4);
  int moved = 0, otherThanFormula = 0, formulaIsSlower = 0;
  for (int round = 0; round < 300; ++round) {
    const int stages = 1 + draw.below(5), layers = stages + draw.below(8);
    const StepWork work = drawWork(layers, 1 + draw.below(8), draw);
    const auto cuts = allCuts(layers, stages);
    MoveProblem problem =
        problemOf(work, cuts[draw.below(static_cast<int>(cuts.size()))], draw);
    const LayerBytes memory = drawBytes(layers, stages, draw);
    if (round % 2)
      problem.memory = &memory;
    const WeighedMove formula = bestMove(problem);
    const StepClock clock(work);
    problem.clock = &clock;
    std::optional<double> best;
    for (const std::vector<int> &cut : cuts) {
      if (problem.memory && !hasRoom(memory, cut))
        continue;
      EXPECT_LE(clock.bound(cut), clock.seconds(cut) * (1 + 1e-9));
      if (const WeighedMove move = weighMove(problem, cut); move.pays)
        best = std::max(best.value_or(0), excess(problem, move));
    }
    const WeighedMove found = bestMove(problem);
    ASSERT_EQ(found.pays, best.has_value()) << round;
    if (formula.pays && !weighMove(problem, formula.cut).pays)
      ++formulaIsSlower;
    if (!best) {
      EXPECT_EQ(found.cut, problem.cut);
      continue;
    }
    ++moved;
    otherThanFormula += found.cut != formula.cut;
    EXPECT_NEAR(excess(problem, found), *best, 1e-9 * (1 + *best)) << round;
    EXPECT_TRUE(!problem.memory || hasRoom(memory, found.cut));
  }
  // Cases of each kind are among the problems.
  EXPECT_GT(moved, 60);
  EXPECT_GT(otherThanFormula, 10);
  EXPECT_GT(formulaIsSlower, 3);
}

// The cut that is more even is slower, as micro-batches differ.
TEST(SimulatedMoveTest, DecidersDoNotMoveToSlowerCuts) {
  Draw draw(5);
  int slower = 0;
  for (int round = 0; round < 200; ++round) {
    const StepWork work = drawWork(8, 6, draw);
    const auto cuts = allCuts(8, 4);
    MoveProblem problem =
        problemOf(work, cuts[draw.below(static_cast<int>(cuts.size()))], draw);
    problem.stepsLeft = 1000;
    problem.price = {};
    MoveDecider decider(MoveOptions{0, 0});
    const MoveDecision formula = decider.decide(problem);
    const StepClock clock(work);
    problem.clock = &clock;
    const MoveDecision decision = decider.decide(problem);
    const double now = clock.seconds(problem.cut);
    if (decision.answer == MoveAnswer::Move) {
      EXPECT_LT(clock.seconds(decision.move.cut), now);
    }
    if (formula.answer == MoveAnswer::Move &&
        clock.seconds(formula.move.cut) > now) {
      ++slower;
      // A refusal shows the cut that seemed to be faster.
      if (decision.answer == MoveAnswer::Stay) {
        EXPECT_EQ(decision.move.cut, formula.move.cut);
      }
      // As another policy has it, too.
      EXPECT_EQ(decider.decide(problem, formula.move.cut).answer,
                MoveAnswer::Stay);
    }
  }
  EXPECT_GT(slower, 2);
}

// With more cuts than can be tried, the answer is as good as the formula's.
TEST(SimulatedMoveTest, ManyCutsAreNotAllTried) {
  Draw draw(6);
  int better = 0;
  for (int round = 0; round < 10; ++round) {
    const StepWork work = drawWork(30, 12, draw);
    MoveProblem problem = problemOf(work, {4, 4, 4, 4, 4, 4, 3, 3}, draw);
    problem.stepsLeft = 1000;
    const WeighedMove formula = bestMove(problem);
    const StepClock clock(work);
    problem.clock = &clock;
    const WeighedMove found = bestMove(problem);
    if (const WeighedMove same = weighMove(problem, formula.cut); same.pays) {
      ASSERT_TRUE(found.pays);
      EXPECT_GE(excess(problem, found), excess(problem, same));
      better += excess(problem, found) > excess(problem, same);
    }
  }
  EXPECT_GT(better, 3);
}

} // namespace
