//===- SwitchPairsTest.cpp - Switches of large models and their bounds ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/planner/switch/SwitchBaselines.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "runtime/planner/switch/SwitchTimes.h"
#include "runtime/planner/switch/routes/DealRoutes.h"
#include "test/runtime/planner/switch/ModelSwitches.h"
#include "test/runtime/planner/switch/SwitchCases.h"
#include "gtest/gtest.h"

#include <array>
#include <limits>
#include <numeric>
#include <tuple>

using namespace dyna;

namespace {

/// Compares a switch with its bound and with Algorithm 1 under the same limits. Returns
/// how many times the bound it takes.
double comparePair(const SwitchCase &one, const SwitchOptions &options = {}) {
  const SwitchPlan plan = planOf(one, options);
  EXPECT_EQ(refusalOf(one, plan), "");
  auto secondsOf = [&](const SwitchPlan &plan) {
    return timesOf(one.tensors, plan, one.network, Fusing::Buckets,
                   options.bytesUnderWay)
        .seconds;
  };
  const double seconds = secondsOf(plan);
  auto simple = planAlgorithm1(one.tensors, one.network, options);
  auto bounds = boundsOf(one.tensors, one.network);
  EXPECT_TRUE(simple.isOk() && bounds.isOk());
  if (!simple.isOk() || !bounds.isOk())
    return 0;
  EXPECT_LE(seconds, secondsOf(*simple) * (1 + 1e-9));
  const double bound = bounds->largest();
  EXPECT_GE(seconds, bound * (1 - 1e-9));
  return bound > 0 ? seconds / bound : 1;
}

constexpr double kAnyRatio = std::numeric_limits<double>::infinity();

/// Compares switches between random strategies of a large model.
void comparePairs(const SwitchModel &model, int nodes, int pairs, double mean,
                  double worst, int seed = 11,
                  const SwitchOptions &options = {}) {
  Draw draw(seed);
  const SwitchNetwork network = nodesOfEight(nodes);
  double sum = 0;
  for (int i = 0; i < pairs; ++i) {
    const ModelPair pair = drawPair(draw, model, network.ranks);
    SCOPED_TRACE(std::to_string(nodes) + " nodes, " + pair.text());
    const double ratio = comparePair(
        {tensorsOf(model, pair.from, pair.to, pair.zero), network}, options);
    EXPECT_LE(ratio, worst);
    sum += ratio;
  }
  EXPECT_LE(sum / pairs, mean) << nodes << " nodes";
}

/// These pairs take 1.028 times the bound in the mean, and at most 1.110 times. More
/// would be within what is promised of all pairs, but says that something got worse.
TEST(SwitchPairs, RandomStrategiesAreNearTheBound) {
  comparePairs(llama32b(), 4, 16, 1.03, 1.13);
}

TEST(CheckAllSwitches, RandomStrategiesAreNearTheBound) {
  for (int nodes : {4, 8, 16})
    for (int seed : {11, 12})
      comparePairs(llama32b(), nodes, 60, 1.1, 1.5, seed);
}

TEST(CheckAllSwitches, NeverSlowerThanAlgorithm1WithFewBytesUnderWay) {
  SwitchOptions options;
  for (int64_t mebibytes : {64, 256, 1024}) {
    options.bytesUnderWay = mebibytes << 20;
    options.bucketBytes = options.bytesUnderWay / 8;
    comparePairs(llama32b(), 4, 20, kAnyRatio, kAnyRatio, 5, options);
  }
}

/// One rank of each node has what all others of the node need. The search has to move
/// shares to ports of other nodes one by one, because every move saves little.
TEST(SwitchPairs, OtherNodesFeedNodesWhoseHolderIsBusy) {
  const ModelPair pair = {{{16, 4, 2}, "dpt"}, {{4, 8, 4}, "ptd"}, false};
  EXPECT_LE(comparePair(
                {tensorsOf(llama32b(), pair.from, pair.to), nodesOfEight(16)}),
            1.32);
}

/// Every rank of 2 nodes becomes a replica. A stage's ranks send to one node after
/// another: in one bucket they could not serve all of them.
TEST(SwitchPairs, BranchesOfLargePiecesAreSpreadOverBuckets) {
  const ModelPair pair = {{{1, 2, 8}, "dpt"}, {{16, 1, 1}, "pdt"}, false};
  const SwitchCase one = {tensorsOf(llama32b(), pair.from, pair.to),
                          nodesOfEight(2)};
  EXPECT_LE(comparePair(one), 1.05);
  SwitchOptions narrow;
  narrow.bytesUnderWay = int64_t{512} << 20;
  narrow.bucketBytes = int64_t{64} << 20;
  EXPECT_LE(comparePair(one, narrow), 1.3);
}

void expectSame(const SwitchMessages &found, const SwitchMessages &expected) {
  ASSERT_EQ(found.buckets.size(), expected.buckets.size());
  ASSERT_EQ(found.messages.size(), expected.messages.size());
  ASSERT_EQ(found.parts.size(), expected.parts.size());
  for (size_t b = 0; b < found.buckets.size(); ++b) {
    EXPECT_EQ(found.buckets[b].messages, expected.buckets[b].messages);
    EXPECT_EQ(found.buckets[b].parts, expected.buckets[b].parts);
    EXPECT_EQ(found.buckets[b].after, expected.buckets[b].after);
  }
  auto numbersOf = [](const SwitchMessages::Message &one) {
    return std::array<int64_t, 4>{one.from, one.to, one.transfers, one.bytes};
  };
  for (size_t m = 0; m < found.messages.size(); ++m)
    EXPECT_EQ(numbersOf(found.messages[m]), numbersOf(expected.messages[m]));
  auto valuesOf = [](const SwitchMessages::Part &one) {
    return std::array<int64_t, 5>{one.rank, one.handsOn ? 1 : 0, one.passing,
                                  one.sent, one.received};
  };
  for (size_t p = 0; p < found.parts.size(); ++p)
    EXPECT_EQ(valuesOf(found.parts[p]), valuesOf(expected.parts[p]));
}

/// What is simulated before there are transfers is what the plan takes.
TEST(SwitchPairs, MessagesAreThoseOfThePlan) {
  Draw draw(9);
  for (int i = 0; i < 300; ++i) {
    const SwitchCase one = drawSwitch(draw);
    SwitchOptions options;
    options.smallestPiece = 1 + draw.below(8);
    options.bucketBytes = 1 + draw.below(200);
    options.bucketTransfers = 1 + draw.below(20);
    auto lots = switches::findLots(one.tensors, options.smallestPiece);
    ASSERT_TRUE(lots.isOk());
    const auto routes = switches::findRoutes(lots->lots, one.network,
                                             switches::RouteSettings());
    switches::DealtSwitch dealt = switches::dealRoutes(
        one.tensors, *lots, routes.lots, one.network, options);
    const SwitchMessages messages = dealt.messages();
    const SwitchPlan plan = std::move(dealt).plan();
    expectSame(messages,
               SwitchMessages::of(one.tensors, plan, one.network.ranks));
    std::vector<int> order(plan.buckets.size());
    std::iota(order.begin(), order.end(), 0);
    EXPECT_DOUBLE_EQ(secondsOf(messages, order, one.network),
                     timesOf(one.tensors, plan, one.network).seconds);
    auto simple = planAlgorithm1(one.tensors, one.network, options);
    auto simpleMessages =
        messagesOfAlgorithm1(one.tensors, one.network, options);
    ASSERT_TRUE(simple.isOk() && simpleMessages.isOk());
    expectSame(*simpleMessages,
               SwitchMessages::of(one.tensors, *simple, one.network.ranks));
    order.resize(simple->buckets.size());
    std::iota(order.begin(), order.end(), 0);
    EXPECT_DOUBLE_EQ(secondsOf(*simpleMessages, order, one.network),
                     timesOf(one.tensors, *simple, one.network).seconds);
  }
}

/// Rates that a network lacks have defaults: between nodes that of inside, and inside 8
/// times that of between.
TEST(SwitchPairs, RatesThatAreNotGivenHaveDefaults) {
  Draw draw(5);
  SwitchOptions options;
  options.smallestPiece = 1;
  for (int i = 0; i < 40; ++i) {
    SwitchCase one = drawSwitch(draw);
    auto secondsWith = [&](double inside, double between) {
      SwitchNetwork given = one.network, all = one.network;
      given.insideRate = inside;
      given.betweenRate = between;
      all.betweenRate = between > 0 ? between : inside;
      all.insideRate = inside > 0 ? inside : 8 * between;
      SwitchCase asked = one;
      asked.network = given;
      return timesOf(one.tensors, planOf(asked, options), all).seconds;
    };
    EXPECT_EQ(secondsWith(1e3, 0), secondsWith(1e3, 1e3));
    EXPECT_EQ(secondsWith(0, 1e3), secondsWith(8e3, 1e3));
  }
}

/// A switch of many bytes is dealt to about 64 groups, also if one rank receives what
/// several send.
TEST(SwitchPairs, GroupsHaveALimit) {
  SwitchCase one = {{}, nodesOf(1, 4)};
  one.network.insideLatency = one.network.betweenLatency = 1e-9;
  for (int layer = 0; layer < 512; ++layer)
    for (int from : {1, 2, 3})
      one.tensors.push_back(bytesOn({from}, {0}, int64_t{4} << 20));
  SwitchOptions options;
  options.bucketBytes = int64_t{1} << 40;
  auto lots = switches::findLots(one.tensors, options.smallestPiece);
  ASSERT_TRUE(lots.isOk());
  const auto routes = switches::findRoutes(lots->lots, one.network, {});
  const SwitchPlan plan = switches::dealRoutes(one.tensors, *lots, routes.lots,
                                               one.network, options)
                              .plan();
  EXPECT_GE(plan.buckets.size(), 48u);
  EXPECT_LE(plan.buckets.size(), 80u);
}

/// Parts count both ways, and a second switch follows its own buckets.
TEST(SwitchMessages, PartsKnowWhatTheyPassOn) {
  const std::vector<SwitchTensor> tensors = {bytesOn({0}, {2}, 10)};
  const auto move = [](int from, int to, SwitchPlace source, SwitchPlace target,
                       int64_t first, int64_t rows) {
    return SwitchTransfer{0, from, to, source, target, {{first, 0}, {rows, 1}}};
  };
  const SwitchPlace old = SwitchPlace::Old, on = SwitchPlace::Passing,
                    made = SwitchPlace::New;
  SwitchPlan plan;
  plan.buckets.resize(2);
  plan.buckets[0].transfers = {move(0, 1, old, on, 0, 4),
                               move(0, 1, old, on, 4, 6)};
  plan.buckets[1].after = 0;
  plan.buckets[1].transfers = {move(1, 2, on, made, 0, 10),
                               move(1, 1, old, made, 0, 1)};
  SwitchMessages all;
  all.add(tensors, plan, 3);
  all.add(tensors, plan, 3);
  ASSERT_EQ(all.buckets.size(), 4u);
  EXPECT_EQ(all.buckets[1].after, 0);
  EXPECT_EQ(all.buckets[3].after, 2);
  const auto expectPart = [&](size_t part, int rank, bool handsOn,
                              int64_t passing, int64_t sent, int64_t received) {
    const SwitchMessages::Part &one = all.parts.at(part);
    EXPECT_EQ(
        std::tuple(one.rank, one.handsOn, one.passing, one.sent, one.received),
        std::tuple(rank, handsOn, passing, sent, received));
  };
  expectPart(0, 0, false, 0, 10, 0);
  expectPart(1, 1, false, 10, 0, 10);
  expectPart(2, 1, true, 0, 10, 0);
  expectPart(3, 2, false, 0, 0, 10);
}

/// Two ranks have two tensors each, which the other one and a third rank lack. All of
/// it leaves the two, or comes over one of the network ports of the node.
TEST(SwitchBounds, FirstCopiesLeaveTheHoldersOfANode) {
  SwitchCase one = {{bytesOn({0, 4}, {1}, 800), bytesOn({0, 4}, {2}, 800),
                     bytesOn({1, 5}, {0}, 800), bytesOn({1, 5}, {3}, 800)},
                    nodesOf(2, 4)};
  one.network.insideRate = 2;
  auto bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->inside, 4 * 800 / (2 * 2 + 4.0));
  EXPECT_DOUBLE_EQ(bounds->largest(), bounds->inside);
  // A summand may go to a rank of another node instead, if one asks for it.
  for (SwitchTensor &tensor : one.tensors)
    tensor.delivery = Delivery::Once;
  bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->inside, 4 * 800 / (2 * 2 + 4.0));
  one.tensors[0].to.push_back({6, one.tensors[0].to[0].box});
  bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->inside, 2 * 800 / (2 + 3.0));
}

/// Two nodes have a tensor for a third one, and exchange one each. All of it leaves
/// the two.
TEST(SwitchBounds, FirstCopiesLeaveTheNodesThatHaveThem) {
  SwitchCase one = {{bytesOn({0, 2}, {4}, 100), bytesOn({0, 1}, {2}, 100),
                     bytesOn({2, 3}, {1}, 100)},
                    nodesOf(3, 2)};
  auto bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->nodeOut, 300 / 4.0);
  for (SwitchTensor &tensor : one.tensors)
    tensor.delivery = Delivery::Once;
  bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->nodeOut, 300 / 4.0);
  // A summand that a rank of a node with it needs may stay in the node.
  one.tensors[1].to.push_back({1, one.tensors[1].to[0].box});
  one.tensors[1].from.erase(one.tensors[1].from.begin() + 1);
  bounds = boundsOf(one.tensors, one.network);
  ASSERT_TRUE(bounds.isOk());
  EXPECT_DOUBLE_EQ(bounds->nodeOut, 200 / 4.0);
}

} // namespace
