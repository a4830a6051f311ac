//===- ChimeraPlanTest.cpp - Plans of two ranks on each device ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/abi/Random.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/report/PlanReport.h"
#include "test/runtime/sim/TimedPlans.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <set>

using namespace dyna;

namespace {

using plan::Instruction;
using testing::HasSubstr;

PlanOptions chimeraOf(int64_t tokens) {
  PlanOptions options = microBatchesOf(tokens);
  options.schedule = Schedule::Chimera;
  return options;
}

/// Expects that the ranks of a device never work at one time.
void expectTurns(const ExecutableGraph &graph, const plan::Plan &plan,
                 const PlanTimes &times) {
  const Turns turns(graph, plan);
  ASSERT_TRUE(turns.any());
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const int twin = graph.twinOf(rank);
    std::vector<TaskTime> items(static_cast<size_t>(turns.count(rank)),
                                {-1, -1});
    for (int one : {rank, twin})
      for (const Turns::Item &item : turns.of(one))
        items[static_cast<size_t>(item.turn)] = {
            times.ranks[one].instructions[item.first].start,
            times.ranks[one].instructions[item.last].end};
    double end = 0;
    for (const TaskTime &item : items) {
      EXPECT_GE(item.start, end);
      end = item.end;
    }
  }
}

double idleOf(const Timed &timed) {
  double idle = 0;
  const ExecutableGraph &graph = timed.planner.graph();
  for (int rank = 0; rank < graph.ranks(); ++rank)
    idle += timed.times.makespan / 2 - timed.times.ranks[rank].busy;
  return idle;
}

// Equation 1 of DynPipe's appendix, from text of a strategy to a simulated plan. Two and
// four equal stages, with T_F = 1 and T_B = 2.
TEST(ChimeraPlanTest, PlansIdleAsTheEquationSays) {
  const CostModel even = costsOf(modelWithDegrees(), 0, 1, 1);
  Timed four("dp=2,pp=4,mirror=1,layers=2+1+1+1", fourTens, even,
             chimeraOf(10));
  EXPECT_DOUBLE_EQ(four.times.makespan, 4 * 1 + (2 * 4 - 2) * 2);
  EXPECT_DOUBLE_EQ(idleOf(four), 2 * (4 * 4 / 2 - 4) * 2);
  expectTurns(four.planner.graph(), four.plan, four.times);
  // Stages of two layers: all seconds are twice as many.
  Timed two("dp=2,pp=2,mirror=1,layers=3+2", {10, 10}, even, chimeraOf(10));
  EXPECT_DOUBLE_EQ(two.times.makespan, 2 * 2 + 2 * 4);
  EXPECT_DOUBLE_EQ(idleOf(two), 0);
  // 1F1B on as many devices, with as many micro-batches.
  Timed plain("pp=4,layers=2+1+1+1", fourTens, even, microBatchesOf(10));
  EXPECT_DOUBLE_EQ(plain.times.makespan, (4 + 4 - 1) * 3);
}

// As in ChimeraTest, with the messages of plans: 3 P - 5 on the longest path.
TEST(ChimeraPlanTest, MessagesTakeTheirTime) {
  const CostModel costs =
      costsOf(modelWithDegrees(), 0, 1, 1, 0,
              "inside { latency_seconds: 0.125 bytes_per_second: 1e300 }");
  Timed four("dp=2,pp=4,mirror=1,layers=2+1+1+1", fourTens, costs,
             chimeraOf(10));
  EXPECT_DOUBLE_EQ(endOfMicroBatches(four.plan, four.times),
                   4 * 1 + (2 * 4 - 2) * 2 + (3 * 4 - 5) * 0.125);
}

TEST(ChimeraPlanTest, TwinsShareADevice) {
  for (const char *text :
       {"dp=2,pp=2,mirror=1,layers=3+2", "dp=4,pp=4,mirror=1,layers=2+1+1+1",
        "dp=4,tp=2,pp=2,mirror=1,layers=3+2",
        "dp=4,tp=2,pp=2,mirror=1,layers=3+2,order=tp+pp+dp"}) {
    SCOPED_TRACE(text);
    const Strategy strategy = *parseStrategy(text);
    EXPECT_EQ(describeStrategy(*parseStrategy(describeStrategy(strategy))),
              describeStrategy(strategy));
    const ExecutableGraph graph =
        *ExecutableGraph::create(modelWithDegrees(), strategy);
    EXPECT_EQ(graph.devices(), graph.ranks() / 2);
    std::vector<int> ranks(static_cast<size_t>(graph.devices()));
    for (int rank = 0; rank < graph.ranks(); ++rank) {
      const int twin = graph.twinOf(rank);
      EXPECT_NE(twin, rank);
      EXPECT_EQ(graph.twinOf(twin), rank);
      EXPECT_EQ(graph.deviceOf(twin), graph.deviceOf(rank));
      EXPECT_EQ(graph.placeOf(twin).stage + graph.placeOf(rank).stage,
                graph.stages() - 1);
      EXPECT_EQ(graph.placeOf(twin).shard, graph.placeOf(rank).shard);
      ++ranks[static_cast<size_t>(graph.deviceOf(rank))];
    }
    EXPECT_THAT(ranks, testing::Each(2));
    // Links are those of the devices.
    const Planner planner(
        graph, costsOf(modelWithDegrees(), 1, 1, 1, 0,
                       "nodes: 8 devices_per_node: 2 inside {} between { "
                       "latency_seconds: 1 bytes_per_second: 1e9 }"));
    for (int rank = 0; rank < graph.ranks(); ++rank)
      EXPECT_EQ(planner.costs().cluster().nodeOf(rank),
                graph.deviceOf(rank) / 2);
  }
  const ExecutableGraph alone =
      *ExecutableGraph::create(modelWithDegrees(), *parseStrategy("dp=2"));
  EXPECT_EQ(alone.twinOf(1), -1);
  EXPECT_EQ(alone.deviceOf(1), 1);
}

TEST(ChimeraPlanTest, BadStrategiesAreRefused) {
  EXPECT_THAT(parseStrategy("dp=2,pp=3,mirror=1").status().message(),
              HasSubstr("needs an even pp, but pp=3"));
  EXPECT_THAT(parseStrategy("dp=3,pp=2,mirror=1").status().message(),
              HasSubstr("needs an even dp, but dp=3"));
  EXPECT_THAT(parseStrategy("pp=2,mirror=2").status().message(),
              HasSubstr("has mirror=2"));
  EXPECT_THAT(
      mirrorReplicas(*parseStrategy("pp=3")).status().message(),
      HasSubstr("pp must be even, but strategy 'dp=1,tp=1,pp=3' has pp=3"));
  EXPECT_THAT(mirrorReplicas(*parseStrategy("dp=2")).status().message(),
              HasSubstr("has pp=1"));
  EXPECT_EQ(describeStrategy(*mirrorReplicas(*parseStrategy("dp=2,pp=4"))),
            "dp=4,tp=1,pp=4,mirror=1");
  EXPECT_EQ(describeStrategy(*mirrorReplicas(*parseStrategy("dp=2,pp=4,"
                                                            "mirror=1"))),
            "dp=2,tp=1,pp=4,mirror=1");
}

// What --pipeline chimera makes of a strategy.
TEST(ChimeraPlanTest, PoliciesMirrorTheStrategy) {
  const CostModel costs = costsOf(modelWithDegrees(), 0, 1, 1);
  PlanRequest request;
  request.tokensPerBatch = 4096;
  request.strategy = *parseStrategy("pp=2");
  request.pipeline = "chimera";
  EXPECT_TRUE(isMirrored(request));
  auto policy = choosePolicy(costs, request);
  ASSERT_TRUE(policy.isOk()) << policy.status().message();
  EXPECT_EQ(policy->options.schedule, Schedule::Chimera);
  EXPECT_TRUE(policy->strategy.mirror);
  EXPECT_EQ(policy->strategy.dp, 2);
  // A strategy that is mirrored already stays as it is, and needs no word.
  request.strategy = policy->strategy;
  request.pipeline.clear();
  auto again = choosePolicy(costs, request);
  ASSERT_TRUE(again.isOk()) << again.status().message();
  EXPECT_EQ(again->options.schedule, Schedule::Chimera);
  EXPECT_EQ(again->strategy.dp, 2);
  request.pipeline = "1f1b";
  EXPECT_THAT(choosePolicy(costs, request).status().message(),
              HasSubstr("mirror=1, which is for --pipeline chimera, but "
                        "--pipeline is 1f1b"));
  request.strategy = *parseStrategy("pp=3");
  request.pipeline = "chimera";
  EXPECT_THAT(choosePolicy(costs, request).status().message(),
              HasSubstr("pp must be even"));
}

// Plans of any lengths and costs are legal and end, also those of other schedules, to
// which plans fall back. Replicas have different numbers of micro-batches, or none.
TEST(ChimeraPlanTest, AllPlansEnd) {
  const char *strategies[] = {"dp=2,pp=2,mirror=1,layers=3+2",
                              "dp=2,pp=4,mirror=1,layers=2+1+1+1",
                              "dp=4,pp=2,mirror=1,layers=2+3,zero=1",
                              "dp=2,tp=2,pp=2,mirror=1,layers=3+2"};
  int others = 0;
  for (uint64_t seed = 0; seed < 120; ++seed) {
    SCOPED_TRACE(seed);
    uint64_t state = seed * 1000;
    auto draw = [&](uint64_t n) { return dyna_mix64(state++) % n; };
    auto seconds = [&] { return static_cast<double>(1 + draw(9)); };
    const CostModel costs =
        costsOf(modelWithDegrees(), seconds(), seconds(), seconds(), seconds(),
                "inside { latency_seconds: 0.5 bytes_per_second: 1000 }");
    std::vector<int64_t> lengths;
    for (uint64_t count = 1 + draw(12); count > 0; --count)
      lengths.push_back(static_cast<int64_t>(1 + draw(16)));
    const Schedule schedules[] = {Schedule::Chimera, Schedule::Chimera,
                                  Schedule::Sequential, Schedule::Adaptive,
                                  Schedule::OneForwardOneBackward};
    PlanOptions options = chimeraOf(16);
    options.schedule = schedules[draw(5)];
    options.splitBackward = draw(2) > 0;
    options.recompute = {static_cast<plan::Recompute>(draw(3))};
    Planner planner(*ExecutableGraph::create(
                        costs.model(), *parseStrategy(strategies[seed % 4])),
                    costs);
    auto plan = planner.training(lengths, 1, options);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    const Status holds = verifyPlan(planner.graph(), *plan, lengths, {});
    ASSERT_TRUE(holds.isOk()) << holds.message();
    for (auto ranks :
         {SimulationOptions::Ranks::Devices, SimulationOptions::Ranks::Host}) {
      SimulationOptions played;
      played.ranks = ranks;
      auto times = timePlan(planner.graph(), *plan, costs, played);
      ASSERT_TRUE(times.isOk()) << times.status().message();
      expectTurns(planner.graph(), *plan, *times);
    }
    // In the memory that plans can use, hardly any plan has another order.
    options.tokensPerStep = 0;
    options.inFlight = 3;
    options.dynamicLimits = *planner.largestDynamicBytes(options, true);
    auto within = planner.training(lengths, 1, options);
    ASSERT_TRUE(within.isOk()) << within.status().message();
    if (options.schedule == Schedule::Chimera)
      others += !within->fallback.empty();
    VerifyOptions limited;
    limited.limits = options.dynamicLimits;
    EXPECT_TRUE(verifyPlan(planner.graph(), *within, lengths, limited).isOk());
    auto evaluation = planner.evaluation(lengths, 1, options);
    ASSERT_TRUE(evaluation.isOk()) << evaluation.status().message();
    EXPECT_TRUE(verifyPlan(planner.graph(), *evaluation, lengths, {}).isOk());
  }
  EXPECT_LE(others, 2);
}

// The replica with one micro-batch ends first. If its reduction starts inside its item, it
// keeps the device while it waits for the other replica, which needs that device.
TEST(ChimeraPlanTest, ItemsThatWaitForOtherItemsAreRefused) {
  Timed timed("dp=2,pp=2,mirror=1,layers=3+2", {10, 10, 10},
              costsOf(modelWithDegrees(), 1, 1, 1), chimeraOf(10));
  // A layer whose parameters are on one stage, before the last backward of the stage.
  const ExecutableGraph &graph = timed.planner.graph();
  auto isAlone = [&](int layer) {
    const auto &list = graph.model().layer(layer).parameters();
    return std::none_of(list.begin(), list.end(),
                        [&](int p) { return graph.spansStages(p); });
  };
  int moved = 0;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    if (graph.placeOf(rank).stage != 0)
      continue;
    std::vector<Instruction> &list = timed.plan.ranks[rank].instructions;
    size_t last = list.size() - 1, start = 0;
    while (list[last].op != Instruction::BACKWARD)
      --last;
    for (size_t k = list.size() - 1; k > last; --k)
      if (list[k].op == Instruction::REDUCE_GRADS_START &&
          list[k].layer > list[last].layer && isAlone(list[k].layer))
        start = k;
    ASSERT_GT(start, last);
    std::rotate(list.begin() + static_cast<ptrdiff_t>(last),
                list.begin() + static_cast<ptrdiff_t>(start),
                list.begin() + static_cast<ptrdiff_t>(start) + 1);
    ++moved;
  }
  ASSERT_EQ(moved, 2);
  PlanPosition failedAt;
  VerifyOptions options;
  options.failedAt = &failedAt;
  const Status refused =
      verifyPlan(timed.planner.graph(), timed.plan, {10, 10, 10}, options);
  ASSERT_FALSE(refused.isOk());
  EXPECT_THAT(refused.message(), HasSubstr("waits for its turn behind rank"));
  EXPECT_THAT(refused.message(), HasSubstr("(P11)"));
  EXPECT_GE(failedAt.rank, 0);
}

} // namespace
