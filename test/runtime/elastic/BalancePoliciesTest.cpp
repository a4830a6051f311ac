//===- BalancePoliciesTest.cpp - Published policies, by hand --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/BalancePolicies.h"

#include "runtime/elastic/balance/DiffuseLayers.h"
#include "test/runtime/elastic/AllCuts.h"

#include <gmock/gmock.h>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

namespace {

BalanceProblem problemOf(std::vector<double> seconds, std::vector<int> cut) {
  BalanceProblem problem;
  problem.seconds = problem.parameters = std::move(seconds);
  problem.cut = std::move(cut);
  return problem;
}

TEST(RankLayersTest, OrderAndBorders) {
  const RankLayers cut = RankLayers::ofCut({2, 1, 3});
  EXPECT_THAT(cut.ranks, ElementsAre(ElementsAre(0, 1), ElementsAre(2),
                                     ElementsAre(3, 4, 5)));
  EXPECT_THAT(cut.cut(), ElementsAre(2, 1, 3));
  EXPECT_EQ(cut.borders(), 2);
  const RankLayers withFree{{{0, 1}, {}, {2}}};
  EXPECT_TRUE(withFree.keepsOrder());
  EXPECT_EQ(withFree.active(), 2);
  EXPECT_THAT(withFree.cut(), IsEmpty());
  const RankLayers other{{{0, 2}, {1, 3}}};
  EXPECT_FALSE(other.keepsOrder());
  EXPECT_EQ(other.borders(), 3);
  EXPECT_THAT(other.cut(), IsEmpty());
  EXPECT_THAT(other.sums({1, 2, 4, 8}), ElementsAre(5, 10));
  // In place, but appended in the wrong order.
  EXPECT_FALSE((RankLayers{{{1, 0}, {2}}}).keepsOrder());
}

TEST(BalancePoliciesTest, Uniform) {
  auto found =
      balanceLayers(BalancePolicy::Uniform,
                    problemOf(std::vector<double>(10, 1), {7, 1, 1, 1}));
  ASSERT_TRUE(found.isOk());
  EXPECT_THAT(found->layers.cut(), ElementsAre(3, 3, 2, 2));
}

TEST(BalancePoliciesTest, Regex) {
  BalanceProblem problem = problemOf(std::vector<double>(8, 1), {1, 1, 6});
  problem.names = {"embed", "H.0", "h.1", "h.2", "h.3", "h.4", "h.5", "head"};
  problem.pattern = "^h[.][0-9]";
  auto found = balanceLayers(BalancePolicy::Regex, problem);
  ASSERT_TRUE(found.isOk());
  EXPECT_THAT(found->layers.cut(), ElementsAre(3, 2, 3));
  problem.pattern = "expert";
  found = balanceLayers(BalancePolicy::Regex, problem);
  EXPECT_EQ(found.status().code(), StatusCode::InvalidArgument);
  EXPECT_THAT(found.status().message(),
              HasSubstr("no layer has a name that matches 'expert': the first "
                        "of 8 is 'embed'"));
  problem.pattern = "h[";
  found = balanceLayers(BalancePolicy::Regex, problem);
  EXPECT_EQ(found.status().code(), StatusCode::InvalidArgument);
  EXPECT_THAT(found.status().message(), HasSubstr("the pattern 'h['"));
}

TEST(BalancePoliciesTest, SecondsAndParametersAreNotTheSame) {
  BalanceProblem problem = problemOf({1, 1, 1, 3}, {1, 3});
  problem.parameters = {3, 1, 1, 1};
  auto cutOf = [&](BalancePolicy policy) {
    auto found = balanceLayers(policy, problem);
    EXPECT_TRUE(found.isOk());
    return found->layers.cut();
  };
  EXPECT_THAT(cutOf(BalancePolicy::Time), ElementsAre(3, 1));
  EXPECT_THAT(cutOf(BalancePolicy::Diffusion), ElementsAre(3, 1));
  EXPECT_THAT(cutOf(BalancePolicy::Parameters), ElementsAre(1, 3));
  EXPECT_THAT(cutOf(BalancePolicy::DiffusionParameters), ElementsAre(1, 3));
}

TEST(BalancePoliciesTest, ASlowLinkShiftsWork) {
  BalanceProblem problem = problemOf(std::vector<double>(6, 1), {3, 3});
  problem.waits = {2, 0};
  auto found = balanceLayers(BalancePolicy::Time, problem);
  ASSERT_TRUE(found.isOk());
  EXPECT_THAT(found->layers.cut(), ElementsAre(2, 4));
}

TEST(BalancePoliciesTest, Algorithm2ByHand) {
  BalanceProblem problem = problemOf({4, 1, 1, 1, 1, 1}, {4, 1, 1});
  auto ranksAfter = [&](int iterations) {
    problem.maxIterations = iterations;
    auto found = balanceLayers(BalancePolicy::Algorithm2, problem);
    EXPECT_TRUE(found.isOk());
    EXPECT_EQ(found->moves, iterations);
    return found->layers;
  };
  // Loads 7, 1 and 1: the smallest layer goes to the first of the least ranks.
  EXPECT_THAT(
      ranksAfter(1).ranks,
      ElementsAre(ElementsAre(0, 2, 3), ElementsAre(4, 1), ElementsAre(5)));
  EXPECT_THAT(ranksAfter(3).sums(problem.seconds), ElementsAre(4, 3, 2));
  // The variance of 0, 3 and 6 is above that of 4, 3 and 2, but below the first one.
  const RankLayers emptied = ranksAfter(4);
  EXPECT_THAT(emptied.ranks, ElementsAre(IsEmpty(), ElementsAre(4, 1, 3),
                                         ElementsAre(5, 2, 0)));
  EXPECT_EQ(emptied.active(), 2);
  const RankLayers last = ranksAfter(5);
  EXPECT_THAT(last.ranks, ElementsAre(ElementsAre(5), ElementsAre(4, 1, 3),
                                      ElementsAre(2, 0)));
  EXPECT_FALSE(last.keepsOrder());
  EXPECT_EQ(last.borders(), 4);
}

TEST(BalancePoliciesTest, Algorithm2TriesOneRankAlone) {
  BalanceProblem problem = problemOf({4, 1, 1, 1, 1, 1}, {4, 1, 1});
  // The first of the least ranks is full, and the last one is not asked.
  const LayerBytes memory{std::vector<int64_t>(6, 1),
                          std::vector<int64_t>(6, 0),
                          {1, 1, 1},
                          {9, 1, 9}};
  problem.memory = &memory;
  auto found = balanceLayers(BalancePolicy::Algorithm2, problem);
  ASSERT_TRUE(found.isOk());
  EXPECT_EQ(found->moves, 0);
  EXPECT_EQ(found->rounds, 5);
}

// Each policy deals all layers once; those that are executed keep their order. No cut has
// a smaller largest stage than that of Time.
TEST(BalancePoliciesTest, EveryPolicyDealsAllLayers) {
  Draw draw(40);
  int worse = 0, unordered = 0;
  for (int round = 0; round < 300; ++round) {
    const int stages = 1 + draw.below(5), layers = stages + draw.below(8);
    BalanceProblem problem;
    for (int l = 0; l < layers; ++l) {
      problem.seconds.push_back(draw.below(20));
      problem.parameters.push_back(draw.below(20));
      problem.names.push_back(draw.below(2) ? "block" : "expert");
    }
    problem.names[0] = "expert";
    problem.pattern = "expert";
    problem.cut = std::vector<int>(stages, 1);
    problem.cut[0] += layers - stages;
    double least = 0;
    for (const BalancePolicyRow &row : balancePolicies) {
      auto found = balanceLayers(row.policy, problem);
      ASSERT_TRUE(found.isOk()) << row.word;
      std::vector<int> all;
      for (const auto &rank : found->layers.ranks)
        all.insert(all.end(), rank.begin(), rank.end());
      std::sort(all.begin(), all.end());
      std::vector<int> expected(layers);
      std::iota(expected.begin(), expected.end(), 0);
      EXPECT_EQ(all, expected) << row.word;
      if (row.isExecuted) {
        EXPECT_EQ(found->layers.cut().size(), problem.cut.size()) << row.word;
      } else {
        unordered += !found->layers.keepsOrder();
        continue;
      }
      const auto sums = found->layers.sums(problem.seconds);
      const double largest = *std::max_element(sums.begin(), sums.end());
      if (row.policy == BalancePolicy::Time)
        least = largest;
      EXPECT_LE(least, largest) << row.word;
      worse += largest > least;
    }
  }
  EXPECT_GT(worse, 100);
  EXPECT_GT(unordered, 100);
}

TEST(BalancePoliciesTest, WordsAreReadAndRefused) {
  auto policies = parseBalancePolicies("time,regex,algorithm2");
  ASSERT_TRUE(policies.isOk());
  EXPECT_THAT(*policies, ElementsAre(BalancePolicy::Time, BalancePolicy::Regex,
                                     BalancePolicy::Algorithm2));
  auto messageOf = [](const std::string &text) {
    auto refused = parseBalancePolicies(text);
    EXPECT_FALSE(refused.isOk());
    return refused.isOk() ? "" : refused.status().message();
  };
  EXPECT_EQ(messageOf("time,fast"),
            "no policy 'fast' balances layers: give some of time, parameters, "
            "diffusion, diffusion-parameters, uniform, regex, algorithm2");
  EXPECT_THAT(messageOf(""), HasSubstr("no policy ''"));
  EXPECT_THAT(messageOf("time,"), HasSubstr("no policy ''"));
  EXPECT_EQ(messageOf("time,time"), "the policy 'time' is given twice");
}

} // namespace
