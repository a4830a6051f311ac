//===- PlanTimesTest.cpp - What a plan takes, before it runs --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/PlanTimes.h"

#include "runtime/abi/Random.h"
#include "runtime/plan/program/InstructionTable.h"
#include "test/runtime/sim/TimedPlans.h"

#include <algorithm>
#include <gmock/gmock.h>

using namespace dyna;

namespace {

using plan::Instruction;

TEST(PlanTimesTest, OneRankIsBusyAllTheTime) {
  const Model &model = modelWithDegrees();
  Timed one("dp=1", fourTens, costsOf(model, 1, 10, 100), microBatchesOf(10));
  // Three blocks.
  EXPECT_DOUBLE_EQ(one.times.makespan, 4 * 3 * (1 + 30 + 100));
  EXPECT_DOUBLE_EQ(one.times.idle(0), 0);
}

// Functions and messages that take no time leave what the executor takes.
TEST(PlanTimesTest, InstructionsTakeTheirTime) {
  const Model &model = modelWithDegrees();
  auto table = CostTable::parse(
      "device { f64_flops: 1e300 f32_flops: 1e300 bf16_flops: 1e300 "
      "bytes_per_second: 1e300 instruction_seconds: 2 step_seconds: 5 } "
      "cluster {}",
      "costs.txt");
  ASSERT_TRUE(table.isOk()) << table.status().message();
  CostModel costs = *CostModel::create(model, std::move(*table));
  Timed one("dp=1", fourTens, costs, microBatchesOf(10));
  const int count = one.plan.ranks[0].count();
  EXPECT_NEAR(one.times.makespan, 5 + 2 * count, 1e-9);
  // Stages one after another: a rank's own, and what it waits for in between.
  Timed two("pp=2,layers=3+2", fourTens, costs, microBatchesOf(10));
  for (auto ranks :
       {SimulationOptions::Ranks::Devices, SimulationOptions::Ranks::Host}) {
    SimulationOptions options;
    options.ranks = ranks;
    PlanTimes times = *timePlan(two.planner.graph(), two.plan, costs, options);
    for (int rank : {0, 1}) {
      const auto &instructions = times.ranks[rank].instructions;
      EXPECT_DOUBLE_EQ(instructions.front().start, 5);
      for (size_t i = 0; i < instructions.size(); ++i)
        EXPECT_GE(instructions[i].end - instructions[i].start, 2 - 1e-9) << i;
    }
  }
}

// Of the mini-batch's forty tokens nine have a target: two of ten, about.
TEST(PlanTimesTest, LossesTakeTheirTargets) {
  const Model &model = modelWithDegrees();
  auto table =
      CostTable::parse("entries { kind: \"head\" direction: FORWARD "
                       "points { tokens: 10 targets: 5 seconds: 50 } "
                       "points { tokens: 10 targets: 10 seconds: 100 } "
                       "points { tokens: 20 targets: 10 seconds: 100 } }",
                       "costs.txt");
  ASSERT_TRUE(table.isOk()) << table.status().message();
  Timed one("dp=1", fourTens, *CostModel::create(model, std::move(*table)),
            microBatchesOf(10));
  EXPECT_NEAR(one.times.makespan, 4 * 2 * 10, 0.1);
}

// p equal stages take (m + p - 1) (f + b) for m micro-batches, and each is idle
// for (p - 1) (f + b) of it.
TEST(PlanTimesTest, BubbleOfEqualStages) {
  CostModel costs = costsOf(modelWithDegrees(), 0, 1, 1);
  Timed two("pp=2,layers=3+2", fourTens, costs, microBatchesOf(10));
  EXPECT_DOUBLE_EQ(two.times.makespan, (4 + 1) * (2 + 4));
  for (int rank : {0, 1}) {
    EXPECT_DOUBLE_EQ(two.times.ranks[rank].busy, 4 * (2 + 4));
    EXPECT_DOUBLE_EQ(two.times.idle(rank), 2 + 4);
  }
  Timed four("pp=4,layers=2+1+1+1", fourTens, costs, microBatchesOf(10));
  EXPECT_DOUBLE_EQ(four.times.makespan, (4 + 3) * (1 + 2));
  // One after another, nothing overlaps.
  PlanOptions options = microBatchesOf(10);
  options.schedule = Schedule::Sequential;
  Timed slow("pp=2,layers=3+2", fourTens, costs, options);
  EXPECT_DOUBLE_EQ(slow.times.makespan, 4 * 2 * (2 + 4));
}

// One after another, every message is on the way alone: two for each
// micro-batch, of ten tokens each.
TEST(PlanTimesTest, MessagesTakeTheirTime) {
  const Model &model = modelWithDegrees();
  PlanOptions options = microBatchesOf(10);
  options.schedule = Schedule::Sequential;
  const double bytes = 10 * tinyWidth * 8;
  for (int perNode : {2, 1}) {
    CostModel costs = costsOf(
        model, 0, 1, 1, 0,
        formatText("devices_per_node: %d inside { latency_seconds: 0.5 "
                   "bytes_per_second: 1000 } between { latency_seconds: "
                   "3 bytes_per_second: 100 }",
                   perNode));
    double message = perNode == 2 ? 0.5 + bytes / 1000 : 3 + bytes / 100;
    Timed slow("pp=2,layers=3+2", fourTens, costs, options);
    // Behind them what both stages hold is summed, all at once, then norms meet:
    // five of 8 bytes.
    auto reduced = [&](double bytes) {
      return perNode == 2 ? 2 * (0.5 + bytes / 2 / 1000)
                          : 2 * (3 + bytes / 2 / 100);
    };
    const RankView &first = slow.planner.graph().replicaView(0);
    double shared = 0;
    for (int p = 0; p < model.parameters(); ++p)
      if (first.place(p).holders == 2)
        shared = std::max(shared, 8.0 * static_cast<double>(first.elements(p)));
    EXPECT_NEAR(slow.times.makespan,
                4 * (2 * (2 + 4) + 2 * message) + reduced(shared) + reduced(40),
                1e-9);
  }
}

// Gradients are summed behind the slowest replica, then norms, then updates. The
// first block and the embedding end at once, and their sums go one after another.
TEST(PlanTimesTest, ReductionsTakeTheirTime) {
  CostModel costs =
      costsOf(modelWithDegrees(), 0, 10, 0, 5,
              "inside { latency_seconds: 7 bytes_per_second: 1e30 }");
  Timed timed("dp=2", {40, 10}, costs, microBatchesOf(40));
  int updates = 0;
  for (const Instruction &i : timed.plan.ranks[0].instructions)
    updates += i.op == Instruction::UPDATE;
  EXPECT_DOUBLE_EQ(timed.times.makespan,
                   4 * 3 * 3 * 10.0 + 2 * 2 * 7 + 2 * 7 + 5 * updates);
}

// Updates wait for the slowest replica.
TEST(PlanTimesTest, ReplicasWaitForEachOther) {
  CostModel costs = costsOf(modelWithDegrees(), 0, 10, 0, 5);
  Timed timed("dp=2", {40, 10}, costs, microBatchesOf(40));
  double slow = 4 * 3 * 3 * 10.0, fast = slow / 4;
  // All five layers update something: the tied table counts once.
  int updates = 0;
  for (const Instruction &i : timed.plan.ranks[0].instructions)
    updates += i.op == Instruction::UPDATE;
  EXPECT_DOUBLE_EQ(timed.times.makespan, slow + 5 * updates);
  EXPECT_DOUBLE_EQ(timed.times.idle(0), 0);
  EXPECT_DOUBLE_EQ(timed.times.idle(1), slow - fast);
  // With ZeRO each has a part of the rows, and together all of them.
  Timed dealt("dp=2,zero=1", {40, 10}, costs, microBatchesOf(40));
  double busy = dealt.times.ranks[0].busy + dealt.times.ranks[1].busy;
  EXPECT_NEAR(busy, slow + fast + 5 * updates, 1e-9);
  EXPECT_LT(dealt.times.makespan, timed.times.makespan);
}

TEST(PlanTimesTest, ShardsRunTogether) {
  CostModel costs = costsOf(modelWithDegrees(), 1, 10, 100);
  Timed timed("tp=2", fourTens, costs, microBatchesOf(10));
  for (int rank : {0, 1})
    EXPECT_DOUBLE_EQ(timed.times.ranks[rank].busy, 4 * 3 * 131);
  EXPECT_DOUBLE_EQ(timed.times.makespan, 4 * 3 * 131);
}

/// When the rank ends each instruction of a kind.
std::vector<double> endsOf(const plan::Plan &plan, const PlanTimes &times,
                           int rank, Instruction::Op op) {
  const auto &list = plan.ranks[rank].instructions;
  std::vector<double> ends;
  for (size_t i = 0; i < list.size(); ++i)
    if (list[i].op == op)
      ends.push_back(times.ranks[rank].instructions[i].end);
  return ends;
}

// Shards meet in calls, replicas do not.
TEST(PlanTimesTest, CallsOfReplicasDoNotMeet) {
  CostModel costs = costsOf(modelWithDegrees(), 0, 10, 0);
  for (const char *strategy : {"dp=2,tp=2", "dp=2,tp=2,order=tp+dp+pp"}) {
    SCOPED_TRACE(strategy);
    Timed timed(strategy, {40, 10}, costs, microBatchesOf(40));
    std::vector<double> ends;
    for (int rank = 0; rank < 4; ++rank) {
      double end =
          endsOf(timed.plan, timed.times, rank, Instruction::BACKWARD).back();
      EXPECT_DOUBLE_EQ(end, timed.times.ranks[rank].busy);
      ends.push_back(end);
    }
    std::sort(ends.begin(), ends.end());
    // Three blocks, forward and backward.
    EXPECT_THAT(ends, testing::ElementsAre(90, 90, 360, 360));
  }
}

/// Rank `rank` updates the first layer before it does anything else.
plan::Plan withLateRank(const plan::Plan &plan, int rank) {
  plan::Plan late = plan;
  auto &list = late.ranks[rank].instructions;
  Instruction update;
  update.op = Instruction::UPDATE;
  list.insert(list.begin(), update);
  return late;
}

// Whoever is late makes those wait that need it: shards that exchange in a call,
// ranks that combine norms, and a stage whose message is not taken yet.
TEST(PlanTimesTest, ALateRankIsWaitedFor) {
  CostModel costs = costsOf(modelWithDegrees(), 1, 10, 100, 5);
  for (const char *strategy : {"tp=2", "dp=2", "pp=2,layers=3+2"}) {
    SCOPED_TRACE(strategy);
    PlanOptions options = microBatchesOf(10);
    options.schedule = Schedule::Sequential;
    Timed timed(strategy, fourTens, costs, options);
    PlanTimes late =
        *timePlan(timed.planner.graph(), withLateRank(timed.plan, 1), costs);
    auto endOf = [&](const PlanTimes &times, Instruction::Op op) {
      const auto &list = timed.plan.ranks[0].instructions;
      for (size_t i = 0; i < list.size(); ++i)
        if (list[i].op == op)
          return times.ranks[0].instructions[i].end;
      ADD_FAILURE() << "rank 0 has no such instruction";
      return 0.0;
    };
    auto expectLate = [&](Instruction::Op op, double seconds) {
      EXPECT_DOUBLE_EQ(endOf(late, op), endOf(timed.times, op) + seconds);
    };
    std::string text = strategy;
    if (text == "tp=2") {
      expectLate(Instruction::LOAD, 0);
      expectLate(Instruction::FORWARD, 5);
    } else if (text == "dp=2") {
      expectLate(Instruction::FORWARD, 0);
      expectLate(Instruction::REDUCE_GRADS_WAIT, 5);
      expectLate(Instruction::COMBINE_NORM, 5);
    } else {
      // 21 seconds of forward hide the 5; rank 1 takes the message in time.
      expectLate(Instruction::SEND_ACT_WAIT, 0);
      CostModel slow = costsOf(modelWithDegrees(), 1, 10, 100, 30);
      PlanTimes later =
          *timePlan(timed.planner.graph(), withLateRank(timed.plan, 1), slow);
      EXPECT_DOUBLE_EQ(endOf(later, Instruction::SEND_ACT_START), 21);
      EXPECT_DOUBLE_EQ(endOf(later, Instruction::SEND_ACT_WAIT), 30);
    }
  }
}

// Where noise makes one shard slow, a call takes what the slowest takes: with every
// second function delayed, three of four calls of two shards are, whoever comes last.
TEST(PlanTimesTest, ACallTakesWhatItsSlowestShardTakes) {
  CostModel costs = costsOf(modelWithDegrees(), 1, 10, 100);
  Timed timed("tp=2", fourTens, costs, microBatchesOf(10));
  const ExecutableGraph &graph = timed.planner.graph();
  const auto &program = timed.plan.ranks[0].instructions;
  SimulationOptions options;
  options.delayEvery = 2;
  options.delaySeconds = 1000;
  int calls = 0, delayed = 0;
  for (options.seed = 1; options.seed <= 40; ++options.seed) {
    PlanTimes times = *timePlan(graph, timed.plan, costs, options);
    for (size_t i = 0; i < program.size(); ++i) {
      const int role = roleOf(program[i]);
      if (role < 0 || !isPerMicroBatch(program[i].op) ||
          graph.replicaView(0).exchanges(program[i].layer, role).empty())
        continue;
      const TaskTime &one = times.ranks[0].instructions[i];
      const TaskTime &two = times.ranks[1].instructions[i];
      EXPECT_EQ(one.end, two.end);
      const double seconds = one.end - std::max(one.start, two.start);
      ASSERT_TRUE(seconds < 300 || seconds > 1000);
      ++calls;
      delayed += seconds > 1000;
    }
  }
  ASSERT_GT(calls, 500);
  EXPECT_NEAR(delayed / static_cast<double>(calls), 0.75, 0.05);
}

// Gathers carry values of the compute type, reductions those of gradients.
TEST(PlanTimesTest, GathersCarryComputedValues) {
  TinyOptions tiny;
  tiny.compute = plan::BF16;
  const Model model = *Model::create(tinyManifest(tiny));
  Timed timed("dp=2,zero=1", fourTens, costsOf(model, 1, 1, 1),
              microBatchesOf(10));
  PlanWork work(timed.planner.graph(), timed.plan, costsOf(model, 1, 1, 1));
  const RankView &view = timed.planner.graph().replicaView(0);
  int64_t elements = 0, gathered = 0, reduced = 0;
  for (int p = 0; p < model.parameters(); ++p)
    elements += view.elements(p);
  for (const PlannedTransfer &transfer : work.transfers())
    if (transfer.kind == PlannedTransfer::Kind::Gather)
      gathered += transfer.bytes;
    else if (transfer.kind == PlannedTransfer::Kind::Reduction)
      reduced += transfer.bytes;
  const int64_t gradient = elementBytes(view.gradientType());
  ASSERT_NE(gradient, 2);
  EXPECT_EQ(gathered, 2 * elements);
  EXPECT_EQ(reduced, gradient * elements);
}

// With ZeRO nobody has all rows before all have sent theirs.
TEST(PlanTimesTest, GathersTakeTheirTimeAndMeet) {
  CostModel costs =
      costsOf(modelWithDegrees(), 1, 10, 100, 5,
              "inside { latency_seconds: 7 bytes_per_second: 1e30 }");
  Timed timed("dp=2,zero=1", fourTens, costs, microBatchesOf(10));
  auto gathered = [](const plan::Plan &plan, const PlanTimes &times) {
    return endsOf(plan, times, 0, Instruction::GATHER_PARAMS_WAIT).front();
  };
  EXPECT_DOUBLE_EQ(gathered(timed.plan, timed.times), 7);
  plan::Plan late = withLateRank(timed.plan, 1);
  PlanTimes later = *timePlan(timed.planner.graph(), late, costs);
  double seconds = later.ranks[1].instructions[0].end;
  ASSERT_GT(seconds, 0);
  EXPECT_DOUBLE_EQ(gathered(timed.plan, later), 7 + seconds);
}

// Two clocks: that of the schedule, which knows stages and items, and that of
// the plan, in which messages are instructions. A rank starts its messages
// between its items, so the plan is never faster.
TEST(PlanTimesTest, PlansTakeWhatTheirSchedulesPromise) {
  for (uint64_t seed = 0; seed < 200; ++seed) {
    SCOPED_TRACE(seed);
    uint64_t state = seed * 100;
    auto below = [&](uint64_t n) {
      return static_cast<int>(dyna_mix64(state++) % n);
    };
    CostModel costs =
        costsOf(modelWithDegrees(), 1 + below(5), 1 + below(5), 1 + below(5));
    const char *strategies[] = {"pp=2,layers=3+2", "pp=3,layers=2+2+1",
                                "pp=4,layers=1+2+1+1"};
    std::vector<int64_t> lengths;
    for (int i = 1 + below(12); i > 0; --i)
      lengths.push_back(10 * (1 + below(4)));
    PlanOptions options = microBatchesOf(40);
    options.schedule =
        allSchedules()[static_cast<size_t>(below(allSchedules().size()))];
    options.inFlight = 1 + below(4);
    options.update = false;
    Timed timed(strategies[seed % 3], lengths, costs, options);
    std::vector<int> all;
    for (int m = 0; m < timed.plan.microBatchCount(); ++m)
      all.push_back(m);
    PipelineSchedule schedule = *schedulePipeline(
        estimateStages(timed.planner.graph(), costs, timed.plan, all, options),
        options, true);
    double promised = 0;
    for (const auto &items : schedule.stages)
      promised = std::max(promised, items.back().end);
    EXPECT_GE(timed.times.makespan, promised * (1 - 1e-12));
    EXPECT_LE(timed.times.makespan, promised * (1 + 1e-12));
  }
}

// Schedules that go by costs know what a message of mean size takes, over the
// slowest way; those that go by numbers have none.
TEST(PlanTimesTest, SchedulesKnowWhatMessagesTake) {
  CostModel costs = costsOf(
      modelWithDegrees(), 1, 1, 1, 0,
      "devices_per_node: 2 inside { latency_seconds: 0.5 bytes_per_second: "
      "1000 } between { latency_seconds: 3 bytes_per_second: 100 }");
  PlanOptions options = microBatchesOf(20);
  options.schedule = Schedule::Adaptive;
  for (const char *strategy : {"pp=2,layers=3+2", "pp=3,layers=2+2+1"}) {
    Timed timed(strategy, {10, 20}, costs, options);
    ASSERT_EQ(timed.plan.microBatchCount(), 2);
    auto seconds = [&] {
      return estimateStages(timed.planner.graph(), costs, timed.plan, {0, 1},
                            options)
          .links[0]
          .seconds;
    };
    const double bytes = 15 * tinyWidth * 8;
    options.schedule = Schedule::Adaptive;
    EXPECT_DOUBLE_EQ(seconds(), timed.planner.graph().stages() == 2
                                    ? 0.5 + bytes / 1000
                                    : 3 + bytes / 100);
    options.schedule = Schedule::OneForwardOneBackward;
    EXPECT_EQ(seconds(), 0);
  }
}

TEST(PlanTimesTest, RanksThatWaitForEachOtherAreRefused) {
  CostModel costs = costsOf(modelWithDegrees(), 1, 1, 1);
  Timed timed("pp=2,layers=3+2", fourTens, costs, microBatchesOf(10));
  plan::Plan plan = timed.plan;
  // The second stage waits for an activation before it is there to take it.
  auto &list = plan.ranks[0].instructions;
  auto send = std::find_if(list.begin(), list.end(), [](const auto &i) {
    return i.op == Instruction::SEND_ACT_START;
  });
  ASSERT_NE(send, list.end());
  auto gradient = std::find_if(list.begin(), list.end(), [](const auto &i) {
    return i.op == Instruction::RECV_GRAD_WAIT;
  });
  ASSERT_NE(gradient, list.end());
  std::iter_swap(send, gradient);
  EXPECT_THAT(timePlan(timed.planner.graph(), plan, costs).status().message(),
              testing::HasSubstr("wait for each other"));
}

} // namespace
