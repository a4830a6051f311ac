//===- StepTimesTest.cpp - Simulates whole steps -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/planner/switch/SwitchCases.h"
#include "test/runtime/sim/JoinedSteps.h"
#include "test/runtime/sim/NaiveClock.h"
#include "test/runtime/sim/RandomPlan.h"

#include <algorithm>
#include <numeric>

using namespace dyna;

namespace {

using plan::Instruction;
using Options = SimulationOptions;

//===----------------------------------------------------------------------===//
// By hand
//===----------------------------------------------------------------------===//

/// Two phases of two layers' functions on two ranks of a node, written by hand. A
/// forward of a block takes 1 s and a backward 2 s. A byte takes 1/10 s.
class HandMade {
public:
  explicit HandMade(const std::string &strategy)
      : costs_(costsOf(modelWithDegrees(), 1, 1, 1, 0,
                       "inside { latency_seconds: 0.5 bytes_per_second: 10 }")),
        graph_(*ExecutableGraph::create(costs_.model(),
                                        *parseStrategy(strategy))) {
    for (plan::Plan &plan : plans_) {
      plan.ranks.resize(2);
      for (int replica = 0; replica < 2; ++replica)
        plan.microBatches.push_back({{{replica, 0, 10}}, replica});
    }
  }

  /// The switch brings so many bytes from rank 0 to rank 1, in one bucket each.
  void moves(const std::vector<int64_t> &buckets) {
    for (int64_t bytes : buckets) {
      switch_.tensors.push_back(bytesOn({0}, {1}, bytes));
      switch_.plan.buckets.push_back(
          {{{static_cast<int>(switch_.tensors.size()) - 1, 0, 1,
             SwitchPlace::Old, SwitchPlace::New,
             switch_.tensors.back().to[0].box}},
           -1});
    }
  }

  void add(int phase, int rank, Instruction::Op op, int layer = 0,
           int microBatch = -1) {
    Instruction i;
    i.op = op;
    i.layer = layer;
    i.microBatch = microBatch < 0 ? rank : microBatch;
    plans_[phase].ranks[rank].instructions.push_back(i);
  }
  void addSwitch(int phase, int rank, Instruction::Op op, int bucket = 0) {
    Instruction i;
    i.op = op;
    i.phase = 1;
    i.bucket = bucket;
    plans_[phase].ranks[rank].instructions.push_back(i);
  }

  PlanTimes play(const Options &options = {}) const {
    const PlanWork work({{&graph_, &plans_[0], &costs_},
                         {&graph_, &plans_[1], &costs_, &switch_}});
    return *playPlan(work, options);
  }

private:
  const CostModel costs_;
  const ExecutableGraph graph_;
  plan::Plan plans_[2];
  GraphSwitch switch_;
};

/// The switch starts before a backward of 2 s, or behind it, and is waited for before
/// the next phase's forward of 1 s.
PlanTimes besideBackward(int64_t bytes, bool startsBefore,
                         const Options &options = {}) {
  HandMade step("dp=2");
  step.moves({bytes});
  for (int rank : {0, 1}) {
    if (startsBefore)
      step.addSwitch(0, rank, Instruction::SWITCH_START);
    step.add(0, rank, Instruction::BACKWARD, 1);
    if (!startsBefore)
      step.addSwitch(0, rank, Instruction::SWITCH_START);
    step.addSwitch(1, rank, Instruction::SWITCH_WAIT);
    step.add(1, rank, Instruction::FORWARD, 1);
  }
  return step.play(options);
}

TEST(StepTimesTest, ABackwardHidesASwitch) {
  // 0.5 s latency and 1 s for its bytes.
  EXPECT_DOUBLE_EQ(besideBackward(10, true).makespan, 2 + 1);
  // 0.5 and 3 s, of which 2 are hidden.
  EXPECT_DOUBLE_EQ(besideBackward(30, true).makespan, 3.5 + 1);
  EXPECT_DOUBLE_EQ(besideBackward(30, false).makespan, 2 + 3.5 + 1);
  // A rank of the host moves bytes between its instructions.
  Options host;
  host.ranks = Options::Ranks::Host;
  EXPECT_DOUBLE_EQ(besideBackward(10, true, host).makespan, 2 + 1.5 + 1);
}

TEST(StepTimesTest, BucketsFollowOneAnotherOnAPort) {
  HandMade step("dp=2");
  step.moves({10, 20});
  for (int rank : {0, 1}) {
    for (int bucket : {0, 1})
      step.addSwitch(0, rank, Instruction::SWITCH_START, bucket);
    for (int bucket : {0, 1})
      step.addSwitch(1, rank, Instruction::SWITCH_WAIT, bucket);
  }
  const PlanTimes times = step.play();
  EXPECT_DOUBLE_EQ(times.ranks[1].instructions[2].end, 1.5);
  EXPECT_DOUBLE_EQ(times.ranks[1].instructions[3].end, 1.5 + 2.5);
  // Out of rank 0 and into rank 1.
  EXPECT_EQ(times.ports.size(), 4u);
}

TEST(StepTimesTest, ARankThatIsLateDelaysItsMessages) {
  HandMade step("dp=2");
  step.moves({10});
  step.addSwitch(0, 0, Instruction::SWITCH_START);
  step.add(0, 1, Instruction::BACKWARD, 1);
  step.addSwitch(0, 1, Instruction::SWITCH_START);
  for (int rank : {0, 1})
    step.addSwitch(1, rank, Instruction::SWITCH_WAIT);
  const PlanTimes times = step.play();
  for (int rank : {0, 1})
    EXPECT_DOUBLE_EQ(times.ranks[rank].instructions.back().end, 2 + 1.5);
}

/// A message of the pipeline and a bucket leave rank 0 at one time.
TEST(StepTimesTest, AMessageAndABucketHaveHalfOfAPortEach) {
  for (const auto sharing :
       {Options::Sharing::None, Options::Sharing::Devices}) {
    HandMade step("pp=2,layers=3+2");
    const int64_t bytes = 10 * tinyWidth * 8; // of the message
    const double seconds = static_cast<double>(bytes) / 10;
    step.moves({bytes / 2});
    step.addSwitch(0, 0, Instruction::SWITCH_START);
    step.add(0, 0, Instruction::SEND_ACT_START, 3, 0);
    step.add(0, 0, Instruction::SEND_ACT_WAIT, 3, 0);
    step.addSwitch(0, 1, Instruction::SWITCH_START);
    step.add(0, 1, Instruction::RECV_ACT_START, 3, 0);
    step.add(0, 1, Instruction::RECV_ACT_WAIT, 3, 0);
    for (int rank : {0, 1})
      step.addSwitch(1, rank, Instruction::SWITCH_WAIT);
    Options options;
    options.sharing = sharing;
    const PlanTimes times = step.play(options);
    // The bucket takes twice its time. Then half of the message is left.
    EXPECT_DOUBLE_EQ(times.transfers[0].end, 0.5 + seconds);
    EXPECT_DOUBLE_EQ(times.transfers[2].end, 0.5 + 1.5 * seconds);
    EXPECT_DOUBLE_EQ(times.makespan, 0.5 + 1.5 * seconds);
  }
}

//===----------------------------------------------------------------------===//
// Random steps
//===----------------------------------------------------------------------===//

TEST(StepTimesTest, RandomStepsAgreeWithTheDefinition) {
  int slowed = 0, buckets = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    RandomStep random(seed);
    SCOPED_TRACE(formatText("seed %d, %s first", seed, random.strategies()[0]));
    const PlanWork work = random.work();
    Options options;
    options.bytesUnderWay = random.bytesUnderWay;
    auto times = playPlan(work, options);
    ASSERT_TRUE(times.isOk()) << times.status().message();
    NaiveClock naive(work, random.bytesUnderWay);
    naive.run();
    for (int rank = 0; rank < work.ranks(); ++rank) {
      const auto &own = times->ranks[rank].instructions;
      ASSERT_EQ(naive.ends[rank].size(), own.size()) << rank;
      for (size_t i = 0; i < own.size(); ++i)
        ASSERT_NEAR(own[i].end, naive.ends[rank][i], 1e-6 * (1 + own[i].end))
            << rank << " " << i;
    }
    slowed += naive.slowed;
    buckets += static_cast<int>(work.switches().buckets.size());
  }
  // Else these steps would show nothing.
  EXPECT_GT(slowed, 40);
  EXPECT_GT(buckets, 300);
}

/// Every kind of simulation comes to an end, and none is faster than the busiest rank.
TEST(StepTimesTest, RandomStepsEndUnderAllConditions) {
  for (uint64_t seed = 200; seed < 240; ++seed) {
    RandomStep random(seed);
    SCOPED_TRACE(seed);
    const PlanWork work = random.work();
    for (auto ranks : {Options::Ranks::Devices, Options::Ranks::Host})
      for (auto streams : {Options::Streams::Lines, Options::Streams::One})
        for (auto sharing : {Options::Sharing::None, Options::Sharing::Devices,
                             Options::Sharing::Nodes}) {
          Options options;
          options.ranks = ranks;
          options.streams = streams;
          options.sharing = sharing;
          options.bytesUnderWay = random.bytesUnderWay;
          auto times = playPlan(work, options);
          ASSERT_TRUE(times.isOk()) << times.status().message();
          for (const RankTimes &rank : times->ranks)
            EXPECT_GE(times->makespan, rank.busy);
          for (int part = 0; part < work.parts(); ++part)
            EXPECT_GE(times->transfers[part].end, times->transfers[part].start);
        }
  }
}

/// A step without switches is simulated as its phases are, one after another.
TEST(StepTimesTest, AStepOfOnePhaseIsItsPlan) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    RandomPlan random(seed);
    const ExecutableGraph &graph = random.timed.planner.graph();
    const PlanWork work({{&graph, &random.timed.plan, &random.costs}});
    const PlanTimes step = *playPlan(work), alone = random.play({});
    EXPECT_EQ(step.makespan, alone.makespan);
    for (int rank = 0; rank < work.ranks(); ++rank)
      for (size_t i = 0; i < alone.ranks[rank].instructions.size(); ++i)
        EXPECT_EQ(step.ranks[rank].instructions[i].end,
                  alone.ranks[rank].instructions[i].end);
  }
}

//===----------------------------------------------------------------------===//
// Switches alone
//===----------------------------------------------------------------------===//

/// The program of a switch alone, on ranks that do nothing else.
class SwitchProgram {
public:
  SwitchProgram(const SwitchCase &one, const SwitchPlan &plan)
      : costs_(costsOf(modelWithDegrees(), 1, 1, 1, 0, clusterOf(one.network))),
        graph_(*ExecutableGraph::create(
            costs_.model(),
            *parseStrategy(formatText("dp=%d", one.network.ranks)))) {
    switch_.tensors = one.tensors;
    switch_.plan = plan;
    plan_.ranks.resize(one.network.ranks);
    for (int rank = 0; rank < one.network.ranks; ++rank)
      write(rank);
  }

  PlanWork work() const {
    return PlanWork({{&graph_, &plan_, &costs_, &switch_}});
  }

private:
  static std::string clusterOf(const SwitchNetwork &network) {
    return formatText("devices_per_node: %d inside { latency_seconds: %g "
                      "bytes_per_second: %g } between { latency_seconds: %g "
                      "bytes_per_second: %g }",
                      network.ranksPerNode, network.insideLatency,
                      network.insideRate, network.betweenLatency,
                      network.betweenRate);
  }

  /// As JoinPhases writes what comes to the first phase.
  void write(int rank) {
    const auto &buckets = switch_.plan.buckets;
    std::vector<bool> waits(buckets.size(), false);
    for (size_t b = 0; b < buckets.size(); ++b)
      for (const SwitchTransfer &one : buckets[b].transfers)
        waits[b] = waits[b] || one.from == rank || one.to == rank;
    auto add = [&](Instruction::Op op, size_t bucket) {
      Instruction i;
      i.op = op;
      i.bucket = static_cast<int>(bucket);
      plan_.ranks[rank].instructions.push_back(i);
    };
    auto wait = [&](size_t bucket) {
      if (waits[bucket])
        add(Instruction::SWITCH_WAIT, bucket);
      waits[bucket] = false;
    };
    for (size_t b = 0; b < buckets.size(); ++b) {
      if (!waits[b])
        continue;
      for (int after = buckets[b].after; after >= 0;
           after = buckets[after].after)
        wait(after);
      add(Instruction::SWITCH_START, b);
    }
    for (size_t b = 0; b < buckets.size(); ++b)
      wait(b);
  }

  const CostModel costs_;
  const ExecutableGraph graph_;
  plan::Plan plan_;
  GraphSwitch switch_;
};

/// Buckets are computed one by one, or event by event as in steps.
TEST(StepTimesTest, SwitchesAloneAgreeWithTheirEvents) {
  Draw draw(7);
  int handedOn = 0;
  for (int n = 0; n < 150; ++n) {
    SCOPED_TRACE(n);
    SwitchCase one = drawSwitch(draw);
    one.network.insideLatency = 0.25 * draw.below(3);
    one.network.betweenLatency = 0.5 * draw.below(3);
    SwitchOptions limits;
    limits.bucketBytes = 64 + draw.below(1000);
    limits.smallestPiece = 16;
    const SwitchPlan plan = planOf(one, limits);
    const SwitchMessages messages =
        SwitchMessages::of(one.tensors, plan, one.network.ranks);
    std::vector<int> order(plan.buckets.size());
    std::iota(order.begin(), order.end(), 0);
    Options options;
    options.bytesUnderWay = draw.below(2) == 0 ? kBytesUnderWay : 2000;
    const BucketTimes alone(messages, order, one.network, Fusing::Buckets,
                            options.bytesUnderWay);
    const SwitchProgram program(one, plan);
    const PlanWork work = program.work();
    const PlanTimes events = *playPlan(work, options);
    EXPECT_NEAR(alone.seconds(), events.makespan, 1e-9 * (1 + alone.seconds()));
    for (int part = 0; part < work.parts(); ++part) {
      ASSERT_NEAR(alone.beginOf(part), events.transfers[part].start,
                  1e-9 * (1 + alone.seconds()));
      ASSERT_NEAR(alone.endOf(part), events.transfers[part].end,
                  1e-9 * (1 + alone.seconds()));
    }
    for (const SwitchMessages::Part &part : messages.parts)
      handedOn += part.handsOn;
  }
  EXPECT_GT(handedOn, 50);
}

} // namespace
