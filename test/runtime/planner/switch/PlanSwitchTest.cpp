//===- PlanSwitchTest.cpp -------------------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/PortLoads.h"
#include "runtime/planner/switch/SwitchBaselines.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "runtime/planner/switch/routes/DealRoutes.h"
#include "test/runtime/plan/SwitchScrambler.h"
#include "test/runtime/planner/switch/ModelSwitches.h"
#include "test/runtime/planner/switch/SwitchCases.h"
#include "gmock/gmock.h"

#include <functional>
#include <limits>
#include <numeric>

using namespace dyna;
using testing::HasSubstr;

namespace {

bool isSameTransfer(const SwitchTransfer &a, const SwitchTransfer &b) {
  return a.tensor == b.tensor && a.from == b.from && a.to == b.to &&
         a.source == b.source && a.target == b.target && a.box == b.box;
}

bool isSame(const SwitchPlan &a, const SwitchPlan &b) {
  auto isSameBucket = [](const SwitchBucket &one, const SwitchBucket &other) {
    return one.after == other.after &&
           std::equal(one.transfers.begin(), one.transfers.end(),
                      other.transfers.begin(), other.transfers.end(),
                      isSameTransfer);
  };
  return std::equal(a.buckets.begin(), a.buckets.end(), b.buckets.begin(),
                    b.buckets.end(), isSameBucket);
}

/// Small boxes are cut, and buckets are small.
SwitchOptions fineOptions(Draw &draw) {
  SwitchOptions options;
  options.smallestPiece = 1 + draw.below(8);
  options.bucketBytes = 1 + draw.below(200);
  options.bucketTransfers = 1 + draw.below(20);
  return options;
}

TEST(PlanSwitch, RandomSwitchesBringEveryElement) {
  Draw draw(1);
  int passed = 0;
  for (int i = 0; i < 4000; ++i) {
    SwitchCase one = drawSwitch(draw);
    SwitchPlan plan = planOf(one, i % 2 ? fineOptions(draw) : SwitchOptions());
    ASSERT_EQ(carryOut(one.tensors, one.network.ranks, plan), "") << i;
    ASSERT_EQ(refusalOf(one, plan), "") << i;
    for (const SwitchBucket &bucket : plan.buckets)
      for (const SwitchTransfer &transfer : bucket.transfers)
        passed += static_cast<int>(transfer.target == SwitchPlace::Passing);
  }
  // Ranks that lend their ports are among them.
  EXPECT_GT(passed, 100);
}

TEST(PlanSwitch, BaselinesBringEveryElement) {
  Draw draw(2);
  for (int i = 0; i < 500; ++i) {
    SwitchCase one = drawSwitch(draw);
    for (const SwitchBaseline &baseline : switchBaselines()) {
      auto plan = baseline.plan(one.tensors, one.network);
      ASSERT_TRUE(plan.isOk()) << baseline.name << plan.status().message();
      ASSERT_EQ(carryOut(one.tensors, one.network.ranks, *plan), "")
          << baseline.name << i;
      ASSERT_EQ(refusalOf(one, *plan), "") << baseline.name << i;
    }
  }
}

TEST(PlanSwitch, NoTransferCanBeMissingTwiceOrElsewhere) {
  Draw draw(3);
  int changed = 0;
  for (int i = 0; i < 300; ++i) {
    SwitchCase one = drawSwitch(draw);
    const SwitchPlan plan = planOf(one, fineOptions(draw));
    for (size_t b = 0; b < plan.buckets.size(); ++b)
      for (size_t t = 0; t < plan.buckets[b].transfers.size(); ++t) {
        SwitchPlan other = plan;
        auto &transfers = other.buckets[b].transfers;
        transfers.erase(transfers.begin() + static_cast<std::ptrdiff_t>(t));
        ASSERT_NE(refusalOf(one, other), "") << "without a transfer";
        other = plan;
        const SwitchTransfer &sent = plan.buckets[b].transfers[t];
        other.buckets[b].transfers.push_back(sent);
        // Passing memory may be filled twice.
        if (sent.target == SwitchPlace::New)
          ASSERT_NE(refusalOf(one, other), "") << "with one more";
        const int rank = draw.below(one.network.ranks);
        other = plan;
        other.buckets[b].transfers[t].to = rank;
        if (rank != sent.to) {
          const bool isStill =
              carryOut(one.tensors, one.network.ranks, other) == "";
          ASSERT_EQ(refusalOf(one, other) == "", isStill) << "to another rank";
          changed += static_cast<int>(!isStill);
        }
        other = plan;
        other.buckets[b].transfers[t].from = rank;
        // The one that would have sent it may have got it for that alone.
        const std::string refusal = refusalOf(one, other);
        if (refusal.find("is not handed on") == std::string::npos)
          ASSERT_EQ(refusal == "",
                    carryOut(one.tensors, one.network.ranks, other) == "")
              << "from another rank: " << refusal;
      }
  }
  EXPECT_GT(changed, 1000);
}

/// Many changes behind each other, each of which leaves a plan that is accepted:
/// other senders, sources, receivers, buckets, pieces, and ways over other ranks.
TEST(PlanSwitch, WhatIsAcceptedOfChangedPlansBringsEveryElement) {
  Draw draw(5);
  int64_t tried = 0, accepted = 0, passed = 0;
  for (int i = 0; i < 500; ++i) {
    const SwitchCase one = drawSwitch(draw);
    const int ranks = one.network.ranks;
    SwitchPlan plan = planOf(one, fineOptions(draw));
    for (int turn = 0; turn < 8; ++turn) {
      plan = scrambleSwitch(one.tensors, ranks, std::move(plan), 20,
                            1000 * i + turn, accepted);
      tried += 20;
      ASSERT_EQ(carryOut(one.tensors, ranks, plan), "") << i << " " << turn;
    }
    for (const SwitchBucket &bucket : plan.buckets)
      for (const SwitchTransfer &transfer : bucket.transfers)
        passed += static_cast<int>(transfer.source != SwitchPlace::Old);
  }
  EXPECT_GT(accepted, tried / 20);
  EXPECT_LT(accepted, tried / 2);
  EXPECT_GT(passed, 1000);
}

TEST(PlanSwitch, BucketsAreBounded) {
  Draw draw(4);
  for (int i = 0; i < 500; ++i) {
    SwitchCase one = drawSwitch(draw);
    SwitchOptions options = fineOptions(draw);
    options.bucketBytes += 1000; // no transfer alone is more
    options.bucketTransfers += 16;
    for (const SwitchBucket &bucket : planOf(one, options).buckets) {
      std::vector<int64_t> sent(one.network.ranks, 0), received = sent,
                                                       count = sent;
      for (const SwitchTransfer &transfer : bucket.transfers) {
        ++count[transfer.from];
        if (transfer.from == transfer.to)
          continue;
        ++count[transfer.to];
        const int64_t bytes =
            transfer.box.volume() * one.tensors[transfer.tensor].elementBytes;
        sent[transfer.from] += bytes;
        received[transfer.to] += bytes;
      }
      for (int rank = 0; rank < one.network.ranks; ++rank) {
        // A box that goes to several ranks at once may be more than that alone.
        EXPECT_LE(received[rank], options.bucketBytes);
        EXPECT_LE(count[rank], options.bucketTransfers + 16);
      }
    }
  }
}

TEST(PlanSwitch, TheSameEveryTime) {
  Draw draw(5);
  for (int i = 0; i < 50; ++i) {
    SwitchCase one = drawSwitch(draw);
    EXPECT_TRUE(isSame(planOf(one), planOf(one)));
  }
}

SwitchOptions inBytes() {
  SwitchOptions options;
  options.smallestPiece = 1;
  return options;
}

/// Four ranks of one node need what one of another has. Each quarter crosses
/// the network once, over ports of its own on both sides.
TEST(PlanSwitch, OneCopyGoesToANodeOverAllPorts) {
  SwitchCase one = {{bytesOn({0}, {4, 5, 6, 7}, 6400)}, nodesOf(2, 4)};
  const SwitchPlan plan = planOf(one, inBytes());
  SwitchTimes times = timesOf(one.tensors, plan, one.network);
  EXPECT_EQ(times.betweenBytes, 6400);
  EXPECT_LE(times.portSeconds, 1.05 * 1600);
  auto bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->nodeIn, 1600);
  EXPECT_DOUBLE_EQ(bounds->nodeOut, 1600);
  EXPECT_NEAR(bounds->receive, 6400 / 9.0, 1e-9);
  EXPECT_NEAR(bounds->send, 6400 / 9.0, 1e-9);
  // Whoever sends to each of them sends four times as much, from one port.
  auto simple = switchBaselines().front().plan(one.tensors, one.network);
  ASSERT_TRUE(simple.isOk());
  EXPECT_DOUBLE_EQ(timesOf(one.tensors, *simple, one.network).portSeconds,
                   4 * 6400);
}

/// Two of four ranks have what the other two need, and another node. All of it
/// leaves the two by their ports; what comes to the others, or leaves the node, is
/// only a part of that.
TEST(PlanSwitch, WhatLeavesSomeRanksOfANodeIsABound) {
  SwitchCase one = {{bytesOn({0, 1}, {2}, 800), bytesOn({0, 1}, {3}, 800),
                     bytesOn({0, 1}, {4}, 100), bytesOn({0, 1}, {5}, 100)},
                    nodesOf(2, 4)};
  auto bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->inside, (1600 + 200) / (2 * 8 + 2.0));
  EXPECT_DOUBLE_EQ(bounds->receive, 800 / 9.0);
  EXPECT_DOUBLE_EQ(bounds->nodeOut, 200 / 4.0);
  EXPECT_DOUBLE_EQ(bounds->largest(), bounds->inside);
  EXPECT_GE(
      timesOf(one.tensors, planOf(one, inBytes()), one.network).portSeconds,
      bounds->inside * (1 - 1e-9));
  // What one of the two and the other node need leaves them too, unless it is a
  // summand for one of both, which may stay.
  one.tensors.push_back(bytesOn({0}, {1, 4}, 100));
  bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->inside, (1600 + 200 + 100) / (2 * 8 + 2.0));
  for (SwitchTensor &tensor : one.tensors)
    tensor.delivery = Delivery::Once;
  bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->inside, (1600 + 200) / (2 * 8 + 2.0));
}

/// What one node has and three others need leaves it about once.
TEST(PlanSwitch, NodesHandOn) {
  SwitchCase one = {{bytesOn({0, 1}, {2, 3, 4, 5, 6, 7}, 6400)}, nodesOf(4, 2)};
  SwitchTimes times = timesOf(one.tensors, planOf(one, inBytes()), one.network);
  EXPECT_EQ(times.betweenBytes, 3 * 6400);
  EXPECT_LE(times.portSeconds, 1.1 * 3200);
}

/// Where bytes are few, hops cost more than they save.
TEST(PlanSwitch, NeverBehindAlgorithm1WhereLatenciesCount) {
  Draw draw(7);
  int ahead = 0;
  for (int i = 0; i < 400; ++i) {
    SwitchCase one = drawSwitch(draw);
    one.network.insideLatency = 1e3;
    one.network.betweenLatency = 2e3;
    auto simple = planAlgorithm1(one.tensors, one.network, SwitchOptions());
    ASSERT_TRUE(simple.isOk()) << simple.status().message();
    const double least = timesOf(one.tensors, *simple, one.network).seconds;
    const double ours = timesOf(one.tensors, planOf(one), one.network).seconds;
    EXPECT_LE(ours, least * (1 + 1e-9)) << i;
    ahead += ours < least;
  }
  // It is not Algorithm 1 under another name.
  EXPECT_GT(ahead, 10);
}

/// Two nodes swap their tensors. One half behind the other would leave ports
/// idle, as the bytes that a rank has under way are limited.
TEST(PlanSwitch, StreamsGoSideBySide) {
  SwitchCase one = {{}, nodesOf(2, 2)};
  for (int rank : {0, 2})
    for (int layer = 0; layer < 64; ++layer)
      one.tensors.push_back(bytesOn({rank, rank + 1}, {2 - rank}, 100));
  SwitchOptions options = inBytes();
  options.bucketBytes = 200;
  options.bytesUnderWay = 1600;
  const SwitchPlan plan = planOf(one, options);
  EXPECT_GT(plan.buckets.size(), 16u);
  SwitchTimes times = timesOf(one.tensors, plan, one.network, Fusing::Buckets,
                              options.bytesUnderWay);
  EXPECT_LE(times.seconds, 1.2 * times.portSeconds);
}

/// From stages to replicas of the whole model. Buckets that stay partly empty, or
/// ports that wait for what they hand on, made it 3 times as long as the bound.
TEST(PlanSwitch, StagesOfALargeModelBecomeReplicas) {
  const ModelPair pair = {{{1, 2, 16}, "dpt"}, {{32, 1, 1}, "dpt"}, true};
  const SwitchCase one = {tensorsOf(llama32b(), pair.from, pair.to, pair.zero),
                          nodesOfEight(4)};
  const SwitchPlan plan = planOf(one);
  auto bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_LE(timesOf(one.tensors, plan, one.network).seconds,
            1.1 * bounds->largest());
}

TEST(PlanSwitch, WhatLiesRightStays) {
  SwitchCase one = {{bytesOn({0, 1, 2}, {0, 2}, 100)}, nodesOf(2, 2)};
  SwitchTimes times = timesOf(one.tensors, planOf(one), one.network);
  EXPECT_EQ(times.localBytes, 200);
  EXPECT_EQ(times.insideBytes + times.betweenBytes, 0);
  EXPECT_EQ(times.seconds, 0);
}

/// Summands go to one rank, to one that has them if there is any.
TEST(PlanSwitch, SummandsAreNotCopied) {
  SwitchCase one = {{bytesOn({0, 1}, {1, 2}, 100), bytesOn({0}, {1, 2}, 100)},
                    nodesOf(2, 2)};
  for (SwitchTensor &tensor : one.tensors)
    tensor.delivery = Delivery::Once;
  SwitchTimes times = timesOf(one.tensors, planOf(one), one.network);
  EXPECT_EQ(times.localBytes, 100);
  EXPECT_EQ(times.insideBytes, 100);
  EXPECT_EQ(times.betweenBytes, 0);
}

/// Where detours save little of the ports' time, what waits for them decides:
/// both plans are played, and the faster one is taken.
TEST(PlanSwitch, DetoursAreTakenWhereTheyAreFasterWhenPlayed) {
  Draw draw(7);
  int direct = 0, detours = 0;
  for (int i = 0; i < 400; ++i) {
    SwitchCase one = drawSwitch(draw);
    one.network.insideLatency = one.network.betweenLatency = 0;
    const SwitchOptions options = fineOptions(draw);
    auto lots = switches::findLots(one.tensors, options.smallestPiece);
    ASSERT_TRUE(lots.isOk());
    switches::RouteSettings settings;
    settings.sweeps = options.sweeps;
    settings.bound = boundsOf(lots->lots, one.network).largest();
    double ports[2], played[2];
    for (bool hasDetours : {false, true}) {
      settings.hasDetours = hasDetours;
      auto routes = switches::findRoutes(lots->lots, one.network, settings);
      ports[hasDetours] = routes.seconds;
      played[hasDetours] =
          timesOf(one.tensors,
                  switches::dealRoutes(one.tensors, *lots, routes.lots,
                                       one.network, options)
                      .plan(),
                  one.network)
              .seconds;
    }
    // Outside of this it is clear without.
    if (ports[1] < 0.86 * ports[0] || ports[1] > 0.97 * ports[0] ||
        played[0] == played[1])
      continue;
    (played[0] < played[1] ? direct : detours) += 1;
    // In another order of buckets it may be less.
    EXPECT_LE(timesOf(one.tensors, planOf(one, options), one.network).seconds,
              std::min(played[0], played[1]))
        << i;
  }
  EXPECT_GE(direct, 5);
  EXPECT_GE(detours, 5);
}

/// From stages to replicas: every rank sends all it has to all others, each piece
/// more than a bucket for its sender. Several senders share a bucket, and no port
/// waits for what it is to hand on as long as it has something of its own to send.
TEST(PlanSwitch, StagesBecomeReplicasNearTheBound) {
  for (int ranks : {4, 8}) {
    SwitchCase one = {{}, nodesOf(1, ranks)};
    std::vector<int> all(static_cast<size_t>(ranks));
    std::iota(all.begin(), all.end(), 0);
    for (int from = 0; from < ranks; ++from)
      for (int layer = 0; layer < 24; ++layer)
        one.tensors.push_back(bytesOn({from}, all, 300));
    SwitchOptions options = inBytes();
    options.bucketBytes = 1000;
    const SwitchPlan plan = planOf(one, options);
    EXPECT_EQ(refusalOf(one, plan), "");
    auto bounds = boundsOf(one.tensors, one.network);
    ASSERT_TRUE(bounds.isOk());
    EXPECT_LE(timesOf(one.tensors, plan, one.network).seconds,
              1.15 * bounds->largest())
        << ranks;
  }
}

TEST(PlanSwitch, BucketsBoundWhatARankReceives) {
  SwitchCase one = {{}, nodesOf(1, 4)};
  for (int from : {1, 2, 3})
    one.tensors.push_back(bytesOn({from}, {0}, 600));
  SwitchOptions options = inBytes();
  options.bucketBytes = 1000;
  EXPECT_EQ(planOf(one, options).buckets.size(), 3u);
  options.bucketBytes = 1200;
  EXPECT_EQ(planOf(one, options).buckets.size(), 2u);
}

/// A tensor of as many bytes as several buckets fills them, also where all of it goes
/// one way: no transfer is larger than a bucket.
TEST(PlanSwitch, WhatGoesOneWayIsCutIntoBuckets) {
  for (const Box &box : {Box::whole({1200, 1}), Box::whole({1, 1200}),
                         Box::whole({120, 10}), Box::whole({12, 100})})
    for (int64_t bucketBytes : {100, 200, 400, 1200}) {
      SwitchCase one = {{bytesOn({0}, {1}, 1200)}, nodesOf(1, 2)};
      one.tensors[0].from[0].box = one.tensors[0].to[0].box = box;
      SwitchOptions options = inBytes();
      options.bucketBytes = bucketBytes;
      const SwitchPlan plan = planOf(one, options);
      EXPECT_EQ(carryOut(one.tensors, one.network.ranks, plan), "");
      EXPECT_EQ(static_cast<int64_t>(plan.buckets.size()), 1200 / bucketBytes);
      for (const SwitchBucket &bucket : plan.buckets)
        for (const SwitchTransfer &transfer : bucket.transfers)
          EXPECT_LE(transfer.box.volume(), bucketBytes);
    }
}

/// Adding is work: those that have summands share it.
TEST(PlanSwitch, SummandsStayWithWhoAddsLeast) {
  SwitchCase one = {{}, nodesOf(1, 2)};
  for (int tensor = 0; tensor < 6; ++tensor) {
    one.tensors.push_back(bytesOn({0, 1}, {0, 1}, 100));
    one.tensors.back().delivery = Delivery::Once;
  }
  std::vector<int> added(2, 0);
  for (const SwitchBucket &bucket : planOf(one, inBytes()).buckets)
    for (const SwitchTransfer &transfer : bucket.transfers)
      ++added[transfer.to];
  EXPECT_EQ(added, (std::vector<int>{3, 3}));
}

TEST(PlanSwitch, RowsAndRanksThatThereAreNotAreRefused) {
  const SwitchNetwork network = nodesOf(1, 2);
  SwitchTensor last = bytesOn({0}, {1}, 100);
  last.from[0].box.begin[0] = last.to[0].box.begin[0] =
      std::numeric_limits<int32_t>::max() - 100;
  EXPECT_TRUE(planSwitch({last}, network).isOk());
  ++last.from[0].box.begin[0];
  ++last.to[0].box.begin[0];
  EXPECT_THAT(planSwitch({last}, network).status().message(),
              HasSubstr("ends behind row or column 2147483647"));
  EXPECT_THAT(planSwitch({bytesOn({0}, {2}, 100)}, network).status().message(),
              HasSubstr("lies on rank 2, but the network has 2 ranks"));
}

TEST(PlanSwitch, WhatNobodyHasIsNamed) {
  SwitchCase one = {{bytesOn({0}, {1}, 100)}, nodesOf(1, 2)};
  one.tensors[0].from[0].box.size[0] = 60;
  auto plan = planSwitch(one.tensors, one.network);
  EXPECT_EQ(
      plan.status().message(),
      "switch: no rank has [60:100, 0:1] of tensor 0, which rank 1 needs");
  one.tensors[0].to[0].rank = 2;
  EXPECT_THAT(planSwitch(one.tensors, one.network).status().message(),
              HasSubstr("rank 2, but the network has 2 ranks"));
}

//===----------------------------------------------------------------------===//
// The least that any plan takes
//===----------------------------------------------------------------------===//

/// Every way of every byte: each rank that does not have it gets it from some
/// other one or not at all.
class AllPlans {
public:
  explicit AllPlans(const SwitchCase &one) : case_(one) {
    for (const SwitchTensor &tensor : one.tensors)
      ways_.push_back(waysOf(tensor));
  }

  double least() {
    PortLoads loads(case_.network);
    least_ = std::numeric_limits<double>::infinity();
    visit(0, loads);
    return least_;
  }

private:
  using Way = std::vector<int>; ///< of each rank whom it gets it from, or -1

  std::vector<Way> waysOf(const SwitchTensor &tensor) const {
    const int ranks = case_.network.ranks;
    std::vector<bool> has(ranks, false), needs(ranks, false);
    for (const RankBox &one : tensor.from)
      has[one.rank] = true;
    for (const RankBox &one : tensor.to)
      needs[one.rank] = true;
    std::vector<Way> ways;
    Way way(ranks, -1);
    std::function<void(int)> choose = [&](int rank) {
      if (rank == ranks) {
        for (int r = 0; r < ranks; ++r) {
          int at = r, steps = 0;
          while (!has[at] && way[at] >= 0 && ++steps <= ranks)
            at = way[at];
          if ((way[r] >= 0 || needs[r]) && !has[at])
            return;
        }
        ways.push_back(way);
        return;
      }
      choose(rank + 1);
      if (has[rank])
        return;
      for (int from = 0; from < ranks; ++from)
        if (from != rank) {
          way[rank] = from;
          choose(rank + 1);
        }
      way[rank] = -1;
    };
    choose(0);
    return ways;
  }

  void visit(size_t tensor, PortLoads &loads) {
    if (loads.largest() >= least_)
      return;
    if (tensor == ways_.size()) {
      least_ = loads.largest();
      return;
    }
    for (const Way &way : ways_[tensor]) {
      PortLoads next = loads;
      for (int rank = 0; rank < case_.network.ranks; ++rank)
        if (way[rank] >= 0)
          next.add(way[rank], rank, 1);
      visit(tensor + 1, next);
    }
  }

  const SwitchCase &case_;
  std::vector<std::vector<Way>> ways_;
  double least_ = 0;
};

TEST(PlanSwitch, NearTheLeastOfSmallSwitches) {
  Draw draw(6);
  double sum = 0, bounds = 0, worst = 0;
  int count = 0;
  for (int i = 0; i < 60; ++i) {
    SwitchCase one = {{}, nodesOf(2, 2)};
    one.network.insideRate = 1 << draw.below(4);
    for (int tensor = 0; tensor < 3; ++tensor) {
      std::vector<int> from = {draw.below(4)}, to = {draw.below(4)};
      if (int other = draw.below(4); other != from[0] && draw.below(2))
        from.push_back(other);
      for (int more = 0; more < 2; ++more)
        if (int other = draw.below(4);
            std::find(to.begin(), to.end(), other) == to.end())
          to.push_back(other);
      one.tensors.push_back(bytesOn(from, to, 1));
    }
    const double least = AllPlans(one).least();
    const double ours =
        timesOf(one.tensors, planOf(one, inBytes()), one.network).portSeconds;
    auto bound = boundsOf(one.tensors, one.network);
    ASSERT_TRUE(bound.isOk());
    ASSERT_LE(bound->largest(), least + 1e-9) << i;
    ASSERT_GE(ours, least - 1e-9) << i;
    if (least == 0) {
      EXPECT_EQ(ours, 0);
      continue;
    }
    sum += ours / least;
    bounds += bound->largest() / least;
    worst = std::max(worst, ours / least);
    ++count;
  }
  // Bytes of one tensor cannot be cut here, and where a detour would be waited
  // for longer than it saves there is none. Seen: 1.12 in the mean, 2 at worst,
  // and bounds of 0.81.
  EXPECT_LE(sum / count, 1.15);
  EXPECT_LE(worst, 2);
  EXPECT_GE(bounds / count, 0.75);
}

} // namespace
