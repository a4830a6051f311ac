//===- PlayPlanTest.cpp - Plans under other conditions --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/plan/SkippingModel.h"
#include "test/runtime/sim/RandomPlan.h"

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/plan/program/SegmentLoad.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <map>
#include <set>
#include <tuple>
#include <utility>

using namespace dyna;

namespace {

using plan::Instruction;
using Options = SimulationOptions;

//===----------------------------------------------------------------------===//
// An independent replay
//===----------------------------------------------------------------------===//

/// Ends of all instructions by the definition: everything begins at the largest
/// end of what it waits for, found by going over the plan until nothing changes.
class Replay {
public:
  Replay(const ExecutableGraph &graph, const plan::Plan &plan,
         const CostModel &costs, const Options &options)
      : graph_(graph), plan_(plan), costs_(costs), options_(options),
        ends(plan.rankCount()) {
    for (int rank = 0; rank < plan.rankCount(); ++rank)
      views_.push_back(graph.rankView(rank));
    for (bool changes = true; changes;) {
      auto before = ends;
      auto exchanges = exchanges_;
      for (int rank = 0; rank < plan.rankCount(); ++rank)
        pass(rank);
      for (auto &[name, exchange] : exchanges_)
        finish(exchange);
      changes = before != ends || exchanges != exchanges_;
    }
  }

private:
  /// What several ranks do, by a text that tells it from all others.
  struct Exchange {
    double seconds = 0, end = 0;
    int ranks = 0;                    ///< that must come before it begins
    std::map<int, double> come;       ///< when
    std::map<int, std::string> after; ///< by rank
    bool operator==(const Exchange &o) const {
      return end == o.end && come == o.come;
    }
  };

  void pass(int rank) {
    calls_ = 0;
    last_.clear();
    ends[rank].clear();
    double now = 0;
    for (const Instruction &i : plan_.ranks[rank].instructions) {
      ExchangeOp op = exchangeOf(i.op);
      if (op.kind == ExchangeKind::None) {
        double seconds = secondsOf(rank, i);
        if (graph_.strategy().tp > 1 && roleOf(i) >= 0 &&
            !graph_.replicaView(rank).exchanges(i.layer, roleOf(i)).empty()) {
          std::vector<int> shards = graph_.compiledGroup(rank, DYNA_GROUP_TP);
          std::string name = formatText("call %d %d", shards[0], calls_++);
          Exchange &call = start(name, rank, now, shards, seconds);
          now = std::max(now, call.end);
        } else {
          now += seconds;
        }
      } else {
        std::vector<std::string> &started =
            started_[{rank, i.layer, op.kind == ExchangeKind::Gather}];
        if (op.isOfParameters() && !op.starts) {
          for (const std::string &name : std::exchange(started, {}))
            now = std::max(now, exchanges_[name].end);
          ends[rank].push_back(now);
          continue;
        }
        for (const auto &[name, exchange] : named(rank, i, op)) {
          if (op.isOfParameters())
            started.push_back(name);
          if (op.starts) {
            Exchange &one =
                start(name, rank, now, exchange.first, exchange.second);
            if (op.isMessage() && bytesOf(i) <= options_.eagerBytes) {
              one.ranks = 1;
              if (!op.sends)
                one.come.erase(rank);
            }
            if (op.kind == ExchangeKind::Norm)
              now = std::max(now, one.end);
            else
              follow(rank, name, exchange.first, op);
          } else {
            now = std::max(now, exchanges_[name].end);
          }
        }
      }
      ends[rank].push_back(now);
    }
  }

  Exchange &start(const std::string &name, int rank, double now,
                  const std::vector<int> &ranks, double seconds) {
    Exchange &exchange = exchanges_[name];
    exchange.ranks = static_cast<int>(ranks.size());
    exchange.seconds = std::max(exchange.seconds, seconds);
    exchange.come[rank] = now;
    return exchange;
  }

  /// What goes the same way goes one after another, and with one stream what the
  /// rank started before.
  void follow(int rank, const std::string &name, const std::vector<int> &ranks,
              ExchangeOp op) {
    std::string way;
    if (options_.streams == Options::Streams::Lines) {
      if (op.isMessage() && !op.sends)
        return;
      for (int other : ranks)
        way += formatText("%d ", other);
      if (!op.isMessage())
        way += "of " + name.substr(0, name.find(':'));
    } else if (exchanges_[name].ranks == 1 && !op.sends && op.isMessage()) {
      return;
    }
    if (last_.count(way))
      exchanges_[name].after[rank] = last_[way];
    last_[way] = name;
  }

  void finish(Exchange &exchange) {
    double begin = 0;
    for (auto [rank, time] : exchange.come)
      begin = std::max(begin, time);
    for (const auto &[rank, name] : exchange.after)
      begin = std::max(begin, exchanges_[name].end);
    exchange.end = begin + exchange.seconds;
  }

  int64_t bytesOf(const Instruction &i) const {
    return graph_.replicaView(graph_.rankAt({0, graph_.stageOf(i.layer), 0}))
        .messageBytes(i.layer, loadOf(plan_.microBatches[i.microBatch]));
  }

  /// Names of what an instruction starts or waits for, with ranks and seconds.
  using Named = std::pair<std::string, std::pair<std::vector<int>, double>>;
  std::vector<Named> named(int rank, const Instruction &i,
                           ExchangeOp op) const {
    const Cluster &cluster = costs_.cluster();
    std::vector<Named> result;
    auto add = [&](const std::string &name, const std::vector<int> &ranks,
                   double seconds) {
      for (const Named &known : result)
        if (known.first == name)
          return;
      result.push_back({name, {ranks, seconds}});
    };
    if (op.kind == ExchangeKind::Norm) {
      std::vector<int> all;
      for (int r = 0; r < plan_.rankCount(); ++r)
        all.push_back(r);
      add("norm", all,
          cluster.exchangeSeconds(plan::LayerExchange::ALL_REDUCE,
                                  8.0 * graph_.model().layers(),
                                  cluster.shapeOf(all)));
      return result;
    }
    if (op.isMessage()) {
      int peer = graph_.peerOf(rank, edgeOf(i), op.isTowardsConsumer());
      int from = op.sends ? rank : peer, to = op.sends ? peer : rank;
      add(formatText("%d to %d: %d %d", from, to, i.layer, i.microBatch),
          {from, to},
          cluster.messageSeconds(from, to, static_cast<double>(bytesOf(i))));
      return result;
    }
    const RankView &view = views_[rank];
    std::map<std::string, int64_t> bytes;
    const bool gathers = op.kind == ExchangeKind::Gather;
    const auto &list = view.layer(i.layer).parameters();
    for (int slot = 0; slot < list.size(); ++slot) {
      int p = list.Get(slot);
      std::vector<int> holders = graph_.holders(p, rank);
      if (!view.updates(i.layer, slot) || holders.size() < 2 ||
          (i.parameter != 0 && i.parameter != slot + 1))
        continue;
      std::string name = graph_.spansStages(p) ? formatText("p%d:", p) : ":";
      name += graph_.spansStages(p) ? ""
                                    : formatText("%d.%d", i.layer, i.parameter);
      name += gathers ? " gather" : " sum";
      for (int other : holders)
        name += formatText(" %d", other);
      bytes[name] +=
          view.elements(p) *
          elementBytes(gathers ? view.computeType(p) : view.gradientType());
      add(name, holders, 0); // in the order of parameters
    }
    for (auto &[name, exchange] : result)
      exchange.second = cluster.exchangeSeconds(
          gathers                  ? plan::LayerExchange::ALL_GATHER
          : graph_.strategy().zero ? plan::LayerExchange::REDUCE_SCATTER
                                   : plan::LayerExchange::ALL_REDUCE,
          static_cast<double>(bytes[name]), cluster.shapeOf(exchange.first));
    return result;
  }

  double secondsOf(int rank, const Instruction &i) const {
    cost::Direction direction = directionOf(roleOf(i));
    if (direction == cost::DIRECTION_UNKNOWN)
      return 0;
    const RankView &view = views_[rank];
    KindAt at{view.layer(i.layer).kind(), graph_.strategy().tp,
              graph_.strategy().sp,
              costs_.cluster()
                  .shapeOf(graph_.compiledGroup(rank, DYNA_GROUP_TP))
                  .perNode};
    if (!isPerMicroBatch(i.op)) {
      if (!graph_.strategy().zero)
        return costs_.seconds(at, direction, {});
      double own = 0, all = 0;
      for (int slot = 0; slot < view.layer(i.layer).parameters_size(); ++slot)
        if (view.updates(i.layer, slot)) {
          int p = view.layer(i.layer).parameters(slot);
          own += static_cast<double>(view.updatedElements(p));
          all += static_cast<double>(view.elements(p));
        }
      return costs_.seconds(at, direction, {}) * (all > 0 ? own / all : 0);
    }
    Load load;
    for (const plan::Segment &s : plan_.microBatches[i.microBatch].segments)
      load += loadOfSample(s.length);
    load.targets = load.queries;
    return costs_.seconds(at, direction, load);
  }

  const ExecutableGraph &graph_;
  const plan::Plan &plan_;
  const CostModel &costs_;
  const Options options_;
  std::vector<RankView> views_;
  std::map<std::string, Exchange> exchanges_;
  /// By rank, layer, and whether rows are gathered.
  std::map<std::tuple<int, int, bool>, std::vector<std::string>> started_;
  // Of the rank that is gone over.
  int calls_ = 0;
  std::map<std::string, std::string> last_;

public:
  std::vector<std::vector<double>> ends;
};

TEST(PlayPlanTest, RandomPlansAgreeWithTheDefinition) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    RandomPlan random(seed);
    Options options;
    if (seed % 2)
      options.streams = Options::Streams::One;
    if (seed % 3 == 0)
      options.eagerBytes = 8 * tinyWidth * 10 * random.below(5);
    SCOPED_TRACE(
        formatText("seed %d, %s", seed, random.timed.planner.graph().name()));
    PlanTimes times = random.play(options);
    Replay replay(random.timed.planner.graph(), random.timed.plan, random.costs,
                  options);
    for (int rank = 0; rank < random.work.ranks(); ++rank) {
      ASSERT_EQ(replay.ends[rank].size(),
                times.ranks[rank].instructions.size());
      for (size_t i = 0; i < replay.ends[rank].size(); ++i)
        ASSERT_NEAR(times.ranks[rank].instructions[i].end, replay.ends[rank][i],
                    1e-9)
            << rank << " " << i << " "
            << describeInstruction(
                   random.timed.plan.ranks[rank].instructions[i]);
    }
  }
}

/// Whether nothing in `later` ends before it does in `sooner`.
void expectNoEarlier(const PlanTimes &later, const PlanTimes &sooner) {
  for (size_t rank = 0; rank < sooner.ranks.size(); ++rank)
    for (size_t i = 0; i < sooner.ranks[rank].instructions.size(); ++i)
      ASSERT_GE(later.ranks[rank].instructions[i].end,
                sooner.ranks[rank].instructions[i].end - 1e-9)
          << rank << " " << i;
}

// Orders are the plan's: what takes longer makes nothing end earlier.
TEST(PlayPlanTest, NothingEndsEarlierWhereSomethingTakesLonger) {
  int longer = 0;
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomPlan random(seed);
    Options plain;
    if (seed % 2)
      plain.streams = Options::Streams::One;
    PlanTimes times = random.play(plain);
    Options late = plain;
    late.delayEvery = 7;
    late.delaySeconds = 3;
    late.seed = seed;
    PlanTimes delayed = random.play(late);
    expectNoEarlier(delayed, times);
    longer += delayed.makespan > times.makespan;
    Options shared = plain;
    shared.sharing = Options::Sharing::Devices;
    expectNoEarlier(random.play(shared), times);
    shared.delayEvery = 5;
    expectNoEarlier(random.play(shared), times);
  }
  EXPECT_GT(longer, 50);
}

TEST(PlayPlanTest, NoiseIsThatOfItsSeed) {
  RandomPlan random(3);
  Options options;
  options.noise = 0.1;
  PlanTimes first = random.play(options), again = random.play(options);
  EXPECT_EQ(first.makespan, again.makespan);
  options.seed = 1;
  EXPECT_NE(first.makespan, random.play(options).makespan);
  // One function after another: the mean of the noise is none, its deviation
  // that of one over the root of their number.
  CostModel costs = costsOf(modelWithDegrees(), 1, 1, 1);
  Timed one("dp=1", std::vector<int64_t>(40, 10), costs, microBatchesOf(10));
  PlanWork work(one.planner.graph(), one.plan, costs);
  double sum = 0, squares = 0;
  const int seeds = 200;
  for (int seed = 0; seed < seeds; ++seed) {
    options.seed = seed;
    double ratio = playPlan(work, options)->makespan / one.times.makespan - 1;
    sum += ratio;
    squares += ratio * ratio;
  }
  // 40 micro-batches, five layers: 200 forwards of 1 s, 200 backwards of 2.
  const double deviation = 0.1 * std::sqrt(200 * 5.0) / 600;
  EXPECT_NEAR(sum / seeds, 0, 4 * deviation / std::sqrt(seeds));
  EXPECT_NEAR(std::sqrt(squares / seeds), deviation, 0.2 * deviation);
}

/// When the rank ends its first instruction of a kind.
double endOf(const plan::Plan &plan, const PlanTimes &times, int rank,
             Instruction::Op op) {
  const auto &list = plan.ranks[rank].instructions;
  auto found = std::find_if(list.begin(), list.end(),
                            [&](const auto &i) { return i.op == op; });
  EXPECT_NE(found, list.end());
  return times.ranks[rank].instructions[found - list.begin()].end;
}

// A receiver that is late keeps the sender waiting, unless messages are eager.
TEST(PlayPlanTest, EagerMessagesWaitForNobody) {
  CostModel costs =
      costsOf(modelWithDegrees(), 1, 10, 100, 60,
              "inside { latency_seconds: 2 bytes_per_second: 1e30 }");
  PlanOptions sequential = microBatchesOf(10);
  sequential.schedule = Schedule::Sequential;
  Timed timed("pp=2,layers=3+2", fourTens, costs, sequential);
  plan::Plan late = timed.plan;
  Instruction update;
  update.op = Instruction::UPDATE;
  late.ranks[1].instructions.insert(late.ranks[1].instructions.begin(), update);
  PlanWork work(timed.planner.graph(), late, costs);
  auto sent = [&](const Options &options) {
    return endOf(late, *playPlan(work, options), 0, Instruction::SEND_ACT_WAIT);
  };
  const int64_t bytes = 10 * tinyWidth * 8;
  Options options;
  EXPECT_DOUBLE_EQ(sent(options), 60 + 2);
  options.eagerBytes = bytes - 1;
  EXPECT_DOUBLE_EQ(sent(options), 60 + 2);
  options.eagerBytes = bytes;
  EXPECT_DOUBLE_EQ(sent(options), 21 + 2);
  // The host's transport copies from one arena to the other: it has none.
  options.ranks = Options::Ranks::Host;
  EXPECT_DOUBLE_EQ(sent(options), 60 + 2);
}

// Two messages at once out of one node, from two devices to two: on links of
// their own they take what one does; the node's ports are twice a device's.
TEST(PlayPlanTest, LinksAreShared) {
  constexpr const char *links =
      "devices_per_node: 2 inside { bytes_per_second: %d } between { "
      "bytes_per_second: 100 }";
  const double bytes = 10 * tinyWidth * 8;
  PlanOptions sequential = microBatchesOf(10);
  sequential.schedule = Schedule::Sequential;
  struct Case {
    const char *strategy;
    std::vector<int64_t> lengths;
    Options::Sharing sharing;
    double speed;      ///< of the first message, in bytes a second
    int inside = 1000; ///< bytes a second
  };
  using Sharing = Options::Sharing;
  for (const Case &test : std::vector<Case>{
           // Ranks 0 and 1 are replicas, 2 and 3 their second stages.
           {"dp=2,pp=2,layers=3+2,order=pp+dp+tp",
            {10, 10},
            Sharing::None,
            100},
           {"dp=2,pp=2,layers=3+2,order=pp+dp+tp",
            {10, 10},
            Sharing::Devices,
            100},
           {"dp=2,pp=2,layers=3+2,order=pp+dp+tp",
            {10, 10},
            Sharing::Nodes,
            100},
           // One alone has all ports of its node.
           {"dp=2,pp=2,layers=3+2,order=pp+dp+tp",
            {10, 60},
            Sharing::Nodes,
            200},
           // At most as fast as inside of a node, but never slower than its own
           // link between nodes.
           {"dp=2,pp=2,layers=3+2,order=pp+dp+tp",
            {10, 60},
            Sharing::Nodes,
            150,
            150},
           {"dp=2,pp=2,layers=3+2,order=pp+dp+tp",
            {10, 60},
            Sharing::Nodes,
            100,
            50},
           {"dp=2,pp=2,layers=3+2", {10, 10}, Sharing::Nodes, 1000}}) {
    CostModel costs =
        costsOf(modelWithDegrees(), 0, 1, 1, 0, formatText(links, test.inside));
    PlanOptions options = sequential;
    options.maxTokensPerMicroBatch = 60;
    Timed timed(test.strategy, test.lengths, costs, options);
    PlanWork work(timed.planner.graph(), timed.plan, costs);
    Options shared;
    shared.sharing = test.sharing;
    PlanTimes times = *playPlan(work, shared);
    // The replica with the sample of 10 tokens; two blocks pass before it sends.
    int rank = timed.plan.microBatches[0].segments[0].length == 10
                   ? 0
                   : timed.planner.graph().rankAt({1, 0, 0});
    EXPECT_NEAR(endOf(timed.plan, times, rank, Instruction::SEND_ACT_WAIT),
                2 + bytes / test.speed, 1e-9)
        << test.strategy << " " << static_cast<int>(test.sharing);
  }
}

// A link moves no more than it can, whoever shares it.
TEST(PlayPlanTest, LinksMoveNoMoreThanTheyCan) {
  CostModel costs = costsOf(modelWithDegrees(), 0, 1, 1, 0,
                            "inside { bytes_per_second: 1000 }");
  Timed timed("pp=3,layers=2+1+2", {10, 10, 10, 10, 10, 10}, costs,
              microBatchesOf(10));
  PlanWork work(timed.planner.graph(), timed.plan, costs);
  Options shared;
  shared.sharing = Options::Sharing::Devices;
  PlanTimes times = *playPlan(work, shared);
  // Of a device's messages in one direction, some is there for at least as long as
  // all of them take alone.
  for (int rank = 0; rank < work.ranks(); ++rank)
    for (int direction : {0, 1}) {
      std::vector<std::pair<double, double>> spans;
      double alone = 0, covered = 0, end = 0;
      for (size_t t = 0; t < work.transfers().size(); ++t) {
        const PlannedTransfer &transfer = work.transfers()[t];
        if (!transfer.isMessage() || work.party(transfer, direction) != rank)
          continue;
        spans.push_back({times.transfers[t].start, times.transfers[t].end});
        alone += transfer.seconds;
      }
      std::sort(spans.begin(), spans.end());
      for (auto [from, to] : spans) {
        covered += std::max(0.0, to - std::max(from, end));
        end = std::max(end, to);
      }
      EXPECT_GE(covered, alone * (1 - 1e-9)) << rank << " " << direction;
    }
  EXPECT_GE(times.makespan, playPlan(work)->makespan);
}

// Host ranks move every byte themselves, and no two things at once.
TEST(PlayPlanTest, HostRanksMoveWhatTheyExchange) {
  for (uint64_t seed = 0; seed < 100; ++seed) {
    SCOPED_TRACE(seed);
    RandomPlan random(seed);
    Options host;
    host.ranks = Options::Ranks::Host;
    PlanTimes times = random.play(host);
    double copying = 0, moved = 0;
    for (const RankTimes &rank : times.ranks) {
      copying += rank.copying;
      EXPECT_LE(rank.busy + rank.copying, times.makespan * (1 + 1e-9));
    }
    for (const PlannedTransfer &transfer : random.work.transfers())
      moved += transfer.isMeeting() ? 0 : transfer.seconds;
    EXPECT_NEAR(copying, moved, 1e-9 * (1 + moved));
  }
}

// Two replicas sum the gradients of a layer while they go on with the one before.
TEST(PlayPlanTest, WhatHostsMoveTheyDoNotCompute) {
  CostModel costs =
      costsOf(modelWithDegrees(), 0, 10, 0, 0,
              "inside { latency_seconds: 7 bytes_per_second: 1e30 }");
  Timed timed("dp=2", {10, 10}, costs, microBatchesOf(10));
  PlanWork work(timed.planner.graph(), timed.plan, costs);
  Options host;
  host.ranks = Options::Ranks::Host;
  PlanTimes times = *playPlan(work, host);
  // The sums of the head and of the last block are ready at 30 and 50 s on rank
  // 1, which goes on; rank 0 carries them out when it comes to them. Rank 1 waits
  // from 90 s on and so carries out the next two, at 98 s and at 118 s; that of
  // the embedding is ready then too, and rank 0 is free.
  auto starts = [&](int rank) {
    std::vector<double> ends;
    const auto &list = timed.plan.ranks[rank].instructions;
    for (size_t i = 0; i < list.size(); ++i)
      if (list[i].op == Instruction::REDUCE_GRADS_START)
        ends.push_back(times.ranks[rank].instructions[i].end);
    return ends;
  };
  EXPECT_THAT(starts(0), testing::ElementsAre(30 + 14, 64 + 14, 98, 118, 132));
  EXPECT_THAT(starts(1), testing::ElementsAre(30, 50, 70, 90, 90));
  EXPECT_DOUBLE_EQ(times.ranks[0].copying, 3 * 14);
  EXPECT_DOUBLE_EQ(times.ranks[1].copying, 2 * 14);
  EXPECT_DOUBLE_EQ(times.makespan, 132 + 14);
  EXPECT_DOUBLE_EQ(times.idle(1), 132 + 14 - 90 - 28 - 14);
}

// A stage sends to several others: messages have the ends of their edges, and a line for
// each pair of ranks and each direction.
TEST(PlanWorkTest, MessagesGoWhereTheirEdgesLead) {
  const ExecutableGraph graph = skippingGraph("pp=4,layers=1+1+1+2");
  const plan::Plan plan = skippingMessages();
  const PlanWork work(graph, plan, costsOf(skippingModel(), 1, 1, 1));
  std::map<int, std::tuple<int, int, bool>> lines;
  std::multiset<std::tuple<int, int, int64_t>> ends;
  for (const PlannedTransfer &message : work.transfers()) {
    ASSERT_TRUE(message.isMessage());
    const bool isGradient = message.kind == PlannedTransfer::Kind::Gradient;
    const int from = work.party(message, 0), to = work.party(message, 1);
    EXPECT_TRUE(lines.insert({message.line, {from, to, isGradient}}).second);
    EXPECT_LT(message.line, work.lines());
    ends.insert({isGradient ? to : from, isGradient ? from : to,
                 message.bytes / (10 * tinyWidth * 8)});
  }
  EXPECT_THAT(ends,
              testing::ElementsAre(std::tuple(0, 1, 1), std::tuple(0, 1, 1),
                                   std::tuple(0, 3, 3), std::tuple(0, 3, 3),
                                   std::tuple(1, 2, 1), std::tuple(1, 2, 1),
                                   std::tuple(1, 3, 2), std::tuple(1, 3, 2),
                                   std::tuple(2, 3, 1), std::tuple(2, 3, 1)));
}

} // namespace
