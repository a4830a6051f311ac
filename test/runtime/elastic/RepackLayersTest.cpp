//===- RepackLayersTest.cpp - Packings beside all cuts --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/pack/RepackLayers.h"

#include "runtime/elastic/balance/StageLoads.h"
#include "runtime/elastic/pack/PackGoals.h"
#include "runtime/elastic/pack/PackPolicies.h"
#include "test/runtime/elastic/AllCuts.h"

#include <gmock/gmock.h>
#include <optional>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

PackProblem drawProblem(Draw &draw) {
  PackProblem problem;
  const int layers = 1 + draw.below(12);
  for (int l = 0; l < layers; ++l)
    problem.own.push_back(draw.below(20));
  for (int w = 1 + draw.below(3); w > 0; --w) {
    PackWay &way = problem.ways.emplace_back();
    for (int l = 0; l < layers; ++l) {
      way.seconds.push_back(draw.below(20));
      way.kept.push_back(draw.below(6));
    }
    way.microBatches = 1 + draw.below(8);
  }
  problem.limit = 10 + draw.below(120);
  problem.ranks = 1 + draw.below(5);
  problem.tokens = 1000;
  problem.linkSeconds = draw.below(3);
  return problem;
}

/// The best of all cuts for so many stages.
struct Tried {
  std::optional<double> seconds; ///< of a step; none if nothing has room
  int64_t lacking = 1 << 30;
};

Tried tryAll(const PackProblem &problem, int stages) {
  Tried tried;
  const auto layers = static_cast<int>(problem.own.size());
  for (const PackWay &way : problem.ways)
    for (const auto &cut : allCuts(layers, stages)) {
      int64_t lacking = 0;
      std::vector<double> loads;
      int layer = 0;
      for (int s = 0; s < stages; ++s) {
        int64_t held = 0;
        double &load =
            loads.emplace_back(s + 1 < stages ? problem.linkSeconds : 0);
        const int64_t inFlight =
            std::min<int64_t>(way.microBatches, stages - s);
        for (int i = 0; i < cut[s]; ++i, ++layer) {
          held += problem.own[layer] + inFlight * way.kept[layer];
          load += way.seconds[layer];
        }
        lacking = std::max(lacking, held - problem.limit);
      }
      tried.lacking = std::min(tried.lacking, lacking);
      const double seconds = stepSeconds(loads, way.microBatches);
      if (lacking == 0)
        tried.seconds = std::min(seconds, tried.seconds.value_or(seconds));
    }
  return tried;
}

TEST(RepackLayersTest, IsTheBestOfAllCuts) {
  Draw draw(41);
  int refused = 0, packed = 0, notFirstWay = 0;
  for (int round = 0; round < 600; ++round) {
    const PackProblem problem = drawProblem(draw);
    const int stages =
        std::min(problem.ranks, static_cast<int>(problem.own.size()));
    std::optional<int> fewest;
    std::optional<double> mostPerRank;
    int64_t leastLacking = 1 << 30;
    for (int p = 1; p <= stages; ++p) {
      const Tried tried = tryAll(problem, p);
      auto packing = packInto(problem, p);
      ASSERT_EQ(packing.isOk(), tried.seconds.has_value());
      EXPECT_EQ(lackingBytes(problem, p), tried.lacking);
      leastLacking = std::min(leastLacking, tried.lacking);
      if (!tried.seconds) {
        ++refused;
        EXPECT_EQ(packing.status().code(), StatusCode::ResourceExhausted);
        EXPECT_THAT(packing.status().message(),
                    HasSubstr("(" + std::to_string(tried.lacking) + " bytes)"));
        continue;
      }
      ++packed;
      EXPECT_DOUBLE_EQ(packing->stepSeconds, *tried.seconds);
      EXPECT_LE(packing->largestBytes, problem.limit);
      notFirstWay += packing->way > 0;
      if (!fewest)
        fewest = p;
      if (*tried.seconds > 0)
        mostPerRank =
            std::max(mostPerRank.value_or(0), 1000 / *tried.seconds / p);
    }
    auto found = packFor(problem, PackGoal::Fewest);
    ASSERT_EQ(found.isOk(), fewest.has_value());
    auto most = packFor(problem, PackGoal::PerRank);
    ASSERT_EQ(most.isOk(), fewest.has_value());
    if (!fewest) {
      EXPECT_THAT(found.status().message(),
                  HasSubstr("(" + std::to_string(leastLacking) + " bytes)"));
      continue;
    }
    EXPECT_EQ(found->ranks(), *fewest);
    EXPECT_NEAR(most->perRank(), mostPerRank.value_or(0), 1e-9);
  }
  EXPECT_GT(refused, 200);
  EXPECT_GT(packed, 200);
  EXPECT_GT(notFirstWay, 50);
}

// More stages keep more micro-batches, so more ranks can have less room.
TEST(RepackLayersTest, FewerRanksCanHaveRoomWhereMoreHaveNot) {
  PackProblem problem;
  problem.own = {1, 1};
  problem.ways = {{"keep", {1, 1}, {6, 0}, 8}};
  problem.limit = 8;
  problem.ranks = 2;
  EXPECT_TRUE(packInto(problem, 1).isOk());
  EXPECT_FALSE(packInto(problem, 2).isOk());
  EXPECT_EQ(lackingBytes(problem, 2), 5);
  problem.limit = 7;
  // One rank lacks one byte, two lack six.
  EXPECT_THAT(
      packFor(problem, PackGoal::Fewest).status().message(),
      HasSubstr("2 layers do not fit on 1 ranks of 7 B: each lacks 1 B"));
}

PackProblem smallProblem() {
  PackProblem problem;
  problem.own = {10, 10, 10, 10, 10, 10, 10, 10};
  problem.ways = {
      {"keep", {1, 1, 1, 1, 1, 1, 1, 1}, {4, 4, 4, 4, 4, 4, 4, 4}, 8},
      {"recompute",
       {1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25, 1.25},
       {1, 1, 1, 1, 1, 1, 1, 1},
       8}};
  problem.limit = 60;
  problem.ranks = 8;
  problem.tokens = 760;
  return problem;
}

TEST(RepackLayersTest, RecomputationIsChosenAnew) {
  const PackProblem problem = smallProblem();
  // Two stages of four layers: 4 * (10 + 2 * 4) is too much, 4 * (10 + 2) is not.
  auto two = packInto(problem, 2);
  ASSERT_TRUE(two.isOk());
  EXPECT_EQ(problem.ways[two->way].name, "recompute");
  EXPECT_DOUBLE_EQ(two->stepSeconds, 10 + 7 * 5);
  EXPECT_EQ(two->largestBytes, 48);
  // Four of two: 2 * (10 + 4 * 4) is not too much.
  auto four = packInto(problem, 4);
  ASSERT_TRUE(four.isOk());
  EXPECT_EQ(problem.ways[four->way].name, "keep");
  EXPECT_DOUBLE_EQ(four->stepSeconds, 8 + 7 * 2);
  EXPECT_EQ(packFor(problem, PackGoal::Fewest)->ranks(), 2);
  EXPECT_EQ(packingsFor(problem, PackGoal::Fewest).size(), 7u);
}

TEST(RepackLayersTest, FewerRanksThanHoldTheModel) {
  auto refused = packInto(smallProblem(), 1);
  ASSERT_FALSE(refused.isOk());
  EXPECT_EQ(refused.status().code(), StatusCode::ResourceExhausted);
  // Eight layers of 10 + 1 bytes, and a limit of 60.
  EXPECT_EQ(refused.status().message(),
            "8 layers do not fit on 1 ranks of 60 B: each lacks 28 B (28 "
            "bytes); use more ranks, recomputation, smaller micro-batches or "
            "ZeRO");
  for (int stages : {0, -1, 9})
    EXPECT_EQ(packInto(smallProblem(), stages).status().code(),
              StatusCode::InvalidArgument);
  EXPECT_EQ(packInto(smallProblem(), 2, 0).status().code(),
            StatusCode::InvalidArgument);
}

TEST(RepackLayersTest, FreeRanksBecomeReplicas) {
  PackProblem problem = smallProblem();
  problem.ranks = 4;
  // Two pipelines of two stages: four micro-batches each.
  auto found = packFor(problem, PackGoal::Replicas);
  ASSERT_TRUE(found.isOk());
  EXPECT_EQ(found->stages, 4);
  EXPECT_DOUBLE_EQ(found->stepSeconds, 22);
  problem.limit = 200;
  found = packFor(problem, PackGoal::Replicas);
  ASSERT_TRUE(found.isOk());
  EXPECT_EQ(found->stages, 1);
  EXPECT_EQ(found->replicas, 4);
  EXPECT_DOUBLE_EQ(found->stepSeconds, 16);
  EXPECT_DOUBLE_EQ(found->perRank(), 760.0 / 16 / 4);
  // A reduction of 80 bytes, 2 * 3 / 4 times, takes 12 seconds: stages share it.
  problem.gradientBytes.assign(8, 10);
  problem.secondsPerByte = 0.1;
  EXPECT_DOUBLE_EQ(packInto(problem, 1, 4)->stepSeconds, 16 + 12);
  EXPECT_DOUBLE_EQ(packInto(problem, 2, 2)->stepSeconds, 8 + 3 * 4 + 4);
  found = packFor(problem, PackGoal::Replicas);
  ASSERT_TRUE(found.isOk());
  EXPECT_EQ(found->stages, 4);
}

TEST(RepackLayersTest, LinksCountForAllStagesButTheLast) {
  PackProblem problem = smallProblem();
  problem.linkSeconds = 0.5;
  EXPECT_DOUBLE_EQ(packInto(problem, 4)->stepSeconds, 8 + 3 * 0.5 + 7 * 2.5);
}

RankLayers oneLayerEach(int ranks) {
  return RankLayers::ofCut(std::vector<int>(ranks, 1));
}

/// One layer on each rank keeps what it computed; one rank has to compute it again.
TEST(RepackLayersTest, OfEqualSpeedsPerRankMoreRanksWin) {
  PackProblem problem;
  problem.own = {1, 1};
  problem.ways = {{"keeps", {1, 1}, {3, 3}, 1}, {"again", {2, 2}, {0, 0}, 1}};
  problem.limit = 5;
  problem.ranks = 2;
  problem.tokens = 8;
  const auto packings = packingsFor(problem, PackGoal::Fewest);
  ASSERT_EQ(packings.size(), 2u);
  EXPECT_EQ(packings[0].perRank(), packings[1].perRank());
  EXPECT_EQ(packFor(problem, PackGoal::PerRank)->stages, 2);
}

/// One micro-batch is on one rank at a time.
TEST(RepackLayersTest, OfEqualStepsFewerRanksWin) {
  PackProblem problem;
  problem.own = {1, 1};
  problem.ways = {{"", {1, 1}, {0, 0}, 1}};
  problem.limit = 5;
  problem.ranks = 4;
  problem.tokens = 8;
  EXPECT_EQ(packInto(problem, 2)->stepSeconds,
            packInto(problem, 1)->stepSeconds);
  EXPECT_EQ(packFor(problem, PackGoal::Replicas)->ranks(), 1);
}

TEST(PackPoliciesTest, FirstFitByHand) {
  const std::vector<int64_t> bytes = {4, 3, 2, 1, 5, 1};
  auto packed =
      packByPolicy(PackPolicy::FirstFit, oneLayerEach(6), bytes, 6, 2);
  EXPECT_THAT(packed.layers.ranks,
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(2, 0), IsEmpty(),
                          ElementsAre(4), ElementsAre(5, 3, 1)));
  EXPECT_EQ(packed.moves, 4);
  EXPECT_FALSE(packed.layers.keepsOrder());
  // It ends at the wanted number.
  packed = packByPolicy(PackPolicy::FirstFit, oneLayerEach(6), bytes, 6, 5);
  EXPECT_EQ(packed.layers.active(), 5);
  EXPECT_EQ(packed.moves, 1);
  packed = packByPolicy(PackPolicy::FirstFit, oneLayerEach(6), bytes, 6, 6);
  EXPECT_EQ(packed.moves, 0);
}

TEST(PackPoliciesTest, BestFitTakesTheFullest) {
  const std::vector<int64_t> bytes = {2, 1, 4};
  EXPECT_THAT(packByPolicy(PackPolicy::FirstFit, oneLayerEach(3), bytes, 6, 2)
                  .layers.ranks,
              ElementsAre(IsEmpty(), ElementsAre(1, 0), ElementsAre(2)));
  EXPECT_THAT(packByPolicy(PackPolicy::BestFit, oneLayerEach(3), bytes, 6, 2)
                  .layers.ranks,
              ElementsAre(IsEmpty(), ElementsAre(1), ElementsAre(2, 0)));
  // It also takes earlier ranks.
  EXPECT_THAT(packByPolicy(PackPolicy::BestFit, oneLayerEach(2), {5, 1}, 6, 1)
                  .layers.ranks,
              ElementsAre(IsEmpty(), ElementsAre(1, 0)));
}

TEST(PackPoliciesTest, RoundRobinEmptiesARankOrLeavesIt) {
  const RankLayers three = RankLayers::ofCut({2, 1, 1});
  EXPECT_THAT(packByPolicy(PackPolicy::RoundRobin, three, {1, 1, 2, 2}, 3, 2)
                  .layers.ranks,
              ElementsAre(IsEmpty(), ElementsAre(2, 0), ElementsAre(3, 1)));
  // The second layer of rank 0 has no room, so the first one stays as well.
  const PackedRanks packed =
      packByPolicy(PackPolicy::RoundRobin, three, {1, 3, 2, 1}, 3, 1);
  EXPECT_THAT(packed.layers.ranks,
              ElementsAre(ElementsAre(0, 1), IsEmpty(), ElementsAre(3, 2)));
  EXPECT_EQ(packed.moves, 1);
  // A rank goes on where the one before it stopped.
  EXPECT_THAT(packByPolicy(PackPolicy::RoundRobin,
                           RankLayers::ofCut({1, 1, 1, 1, 1}), {1, 1, 1, 1, 1},
                           5, 2)
                  .layers.ranks,
              ElementsAre(IsEmpty(), IsEmpty(), IsEmpty(), ElementsAre(3, 0, 1),
                          ElementsAre(4, 2)));
}

// No policy loses a layer, fills a rank above its limit or empties more than is wanted.
TEST(PackPoliciesTest, EveryPolicyKeepsAllLayers) {
  Draw draw(42);
  int emptied = 0, unordered = 0;
  for (int round = 0; round < 300; ++round) {
    const int ranks = 1 + draw.below(6), layers = ranks + draw.below(8);
    std::vector<int64_t> bytes;
    for (int l = 0; l < layers; ++l)
      bytes.push_back(1 + draw.below(9));
    const auto cuts = allCuts(layers, ranks);
    const RankLayers from =
        RankLayers::ofCut(cuts[draw.below(static_cast<int>(cuts.size()))]);
    const std::vector<double> weights(bytes.begin(), bytes.end());
    const auto before = from.sums(weights);
    const auto limit = static_cast<int64_t>(
        *std::max_element(before.begin(), before.end()) + draw.below(20));
    const int wanted = 1 + draw.below(ranks);
    for (const PackPolicyRow &row : packPolicies) {
      const PackedRanks packed =
          packByPolicy(row.policy, from, bytes, limit, wanted);
      EXPECT_GE(packed.layers.active(), wanted) << row.word;
      size_t all = 0;
      for (const auto &rank : packed.layers.ranks)
        all += rank.size();
      EXPECT_EQ(all, bytes.size()) << row.word;
      for (double sum : packed.layers.sums(weights))
        EXPECT_LE(sum, static_cast<double>(limit)) << row.word;
      emptied += packed.layers.active() < ranks;
      unordered += !packed.layers.keepsOrder();
    }
  }
  EXPECT_GT(emptied, 300);
  EXPECT_GT(unordered, 100);
}

/// Numbers in which the first packing of a goal is the largest.
std::vector<double> worthOf(PackGoal goal, const Packing &packing) {
  switch (goal) {
  case PackGoal::Fewest:
    return {-static_cast<double>(packing.ranks())};
  case PackGoal::PerRank:
    return {packing.perRank(), static_cast<double>(packing.ranks())};
  case PackGoal::Replicas:
    return {packing.tokensPerSecond, -static_cast<double>(packing.ranks())};
  }
  return {};
}

// All numbers of ranks that have room are listed, the best first, as all cuts say.
TEST(PackGoalsTest, OrdersAllPackingsThatHaveRoom) {
  Draw draw(43);
  int several = 0;
  for (int round = 0; round < 200; ++round) {
    const PackProblem problem = drawProblem(draw);
    const auto layers = static_cast<int>(problem.own.size());
    for (const PackGoalRow &row : packGoals) {
      const std::vector<Packing> found = packingsFor(problem, row.goal);
      size_t fitting = 0;
      for (int s = 1; s <= std::min(layers, problem.ranks); ++s) {
        const bool hasRoom = tryAll(problem, s).seconds.has_value();
        fitting += hasRoom;
        EXPECT_EQ(std::any_of(found.begin(), found.end(),
                              [s](const Packing &one) {
                                return one.stages == s && one.replicas == 1;
                              }),
                  hasRoom);
      }
      several += fitting > 1;
      for (size_t i = 1; i < found.size(); ++i)
        EXPECT_GE(worthOf(row.goal, found[i - 1]), worthOf(row.goal, found[i]));
      const auto first = packFor(problem, row.goal);
      ASSERT_EQ(first.isOk(), !found.empty());
      if (first.isOk()) {
        EXPECT_EQ(first->cut, found[0].cut);
        EXPECT_EQ(first->replicas, found[0].replicas);
      }
    }
  }
  EXPECT_GT(several, 100);
}

TEST(PackGoalsTest, NearerIsMeasuredByTheGoal) {
  Packing now, next;
  now.stages = 4;
  next.stages = 2;
  now.tokensPerSecond = 400;
  next.tokensPerSecond = 201;
  EXPECT_TRUE(isNearer(PackGoal::Fewest, next, now, 0.01));
  EXPECT_FALSE(isNearer(PackGoal::Fewest, now, now, 0.01));
  EXPECT_FALSE(isNearer(PackGoal::PerRank, next, now, 0.01));
  EXPECT_TRUE(isNearer(PackGoal::PerRank, next, now, 0.004));
  EXPECT_FALSE(isNearer(PackGoal::Replicas, next, now, 0));
  EXPECT_TRUE(isNearer(PackGoal::Replicas, now, next, 0.5));
}

TEST(PackGoalsTest, WordsAreFound) {
  for (const PackGoalRow &row : packGoals)
    EXPECT_EQ(*findPackGoal(wordOf(row.goal)), row.goal);
  EXPECT_THAT(findPackGoal("most").status().message(),
              HasSubstr("'most' is no goal of packing: give one of fewest, "
                        "per-rank, replicas"));
}

} // namespace
