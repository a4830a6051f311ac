//===- SliceTokensTest.cpp - The cut into slices against all cuts ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/SliceTokens.h"
#include "test/runtime/planner/slice/SliceCases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <set>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr CostKind kinds[] = {CostKind::Integers, CostKind::Reals,
                              CostKind::Monotone, CostKind::Steps};
constexpr int64_t unlimited = std::numeric_limits<int64_t>::max();

SliceProblem problemOf(std::vector<int64_t> lengths, SliceCosts costs,
                       int stages, int64_t grain = 1) {
  SliceProblem problem;
  problem.lengths = std::move(lengths);
  problem.costs = std::move(costs);
  problem.options.stages = stages;
  problem.options.grain = grain;
  return problem;
}

/// The plan's sums are its own, and it is within the limits.
void checkPlan(const SliceProblem &problem, const SlicePlan &plan) {
  SlicePlan again = plan;
  Status timed = timeSlices(problem, again);
  ASSERT_TRUE(timed.isOk()) << timed.message();
  EXPECT_EQ(again.objective, plan.objective);
  EXPECT_EQ(again.bytes, plan.bytes);
  EXPECT_LE(plan.bytes, problem.options.totalBytes);
  for (const SampleCut &cut : plan.cuts) {
    SliceShape shape;
    shape.samples = static_cast<int64_t>(cut.samples.size());
    EXPECT_LE(shape.samples, problem.options.mostJoined);
    for (const TokenSlice &slice : cut.slices) {
      shape.tokens = slice.tokens;
      shape.mode = slice.mode;
      EXPECT_LE(shape.tokens * shape.samples, problem.options.sliceTokens);
      EXPECT_LE(problem.costs.slice(shape).bytes, problem.options.sliceBytes);
      shape.begin += slice.tokens;
    }
  }
}

/// What all plans say is what the function says. Returns whether there is a plan.
bool expectBest(const SliceProblem &problem, bool toTheBit) {
  const double best = bestOfAllPlans(problem);
  auto plan = sliceTokens(problem);
  if (std::isinf(best)) {
    EXPECT_EQ(plan.status().code(), StatusCode::ResourceExhausted);
    return false;
  }
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  if (!plan.isOk())
    return false;
  checkPlan(problem, *plan);
  if (toTheBit)
    EXPECT_EQ(plan->objective, best);
  else
    EXPECT_NEAR(plan->objective, best, 1e-12 * best);
  return true;
}

TEST(SliceTokensTest, NoCutOfOneSampleIsBetter) {
  Draw draw(1);
  int sliced = 0;
  for (int round = 0; round < 4000; ++round) {
    const CostKind kind = kinds[round % 4];
    const int64_t grain = 1 + draw.below(3),
                  length = 1 + draw.below(static_cast<int>(12 * grain));
    SliceProblem problem = problemOf({length}, drawCosts(round, kind, 1),
                                     1 + draw.below(12), grain);
    problem.options.joinsDirections = draw.below(3) == 0;
    ASSERT_TRUE(expectBest(problem, true)) << "round " << round;
    sliced += sliceTokens(problem)->cuts[0].slices.size() > 1;
  }
  EXPECT_GE(sliced, 1500);
}

/// Equation 6 of the paper, plainly, for every pair of caps.
double bestOfAllCaps(const SliceProblem &problem) {
  const int64_t length = problem.lengths[0];
  std::set<double> forwards, backwards;
  std::vector<std::vector<SliceCost>> costs(length);
  for (int64_t begin = 0; begin < length; ++begin)
    for (int64_t end = begin + 1; end <= length; ++end) {
      costs[begin].push_back(problem.costs.slice({1, begin, end - begin, 0}));
      forwards.insert(costs[begin].back().forward);
      backwards.insert(costs[begin].back().backward);
    }
  constexpr double infinity = std::numeric_limits<double>::infinity();
  double best = infinity;
  for (double forward : forwards)
    for (double backward : backwards) {
      std::vector<double> sums(length + 1, infinity);
      sums[0] = 0;
      for (int64_t end = 1; end <= length; ++end)
        for (int64_t begin = 0; begin < end; ++begin) {
          const SliceCost &cost = costs[begin][end - begin - 1];
          if (cost.forward <= forward && cost.backward <= backward)
            sums[end] = std::min(sums[end],
                                 sums[begin] + (cost.forward + cost.backward));
        }
      best = std::min(best, sums[length] + (problem.options.stages - 1) *
                                               (forward + backward));
    }
  return best;
}

TEST(SliceTokensTest, NoPairOfCapsIsBetterForMoreUnits) {
  Draw draw(2);
  int tried = 0;
  for (int round = 0; round < 48; ++round) {
    SliceProblem problem =
        problemOf({14 + draw.below(7)}, drawCosts(round, kinds[round % 4], 1),
                  2 + draw.below(60));
    auto plan = sliceTokens(problem);
    ASSERT_TRUE(plan.isOk());
    checkPlan(problem, *plan);
    EXPECT_EQ(plan->objective, bestOfAllCaps(problem)) << "round " << round;
    tried = std::max(tried, plan->tried);
  }
  // Some of them need a real search.
  EXPECT_GE(tried, 40);
}

TEST(SliceTokensTest, NoPlanOfSeveralSamplesIsBetter) {
  Draw draw(3);
  int joined = 0;
  for (int round = 0; round < 1200; ++round) {
    const int64_t grain = 1 + draw.below(2);
    std::vector<int64_t> lengths;
    const int samples = 2 + draw.below(3), units = samples == 4 ? 4 : 5;
    for (int sample = 0; sample < samples; ++sample)
      lengths.push_back(draw.below(2) && sample > 0
                            ? lengths.back()
                            : 1 + draw.below(static_cast<int>(units * grain)));
    const CostKind kind = kinds[round % 4];
    SliceProblem problem =
        problemOf(lengths, drawCosts(round, kind, 1), 1 + draw.below(8), grain);
    problem.options.joinsDirections = draw.below(3) == 0;
    problem.options.mostJoined = 1 + draw.below(4);
    if (draw.below(3) == 0)
      problem.bundles = {{0}};
    if (draw.below(3) == 0)
      problem.bundles.push_back({1});
    ASSERT_TRUE(expectBest(problem, kind == CostKind::Integers))
        << "round " << round;
    auto plan = sliceTokens(problem);
    for (const SampleCut &cut : plan->cuts)
      joined += cut.samples.size() > 1;
  }
  EXPECT_GE(joined, 100);
}

TEST(SliceTokensTest, LimitsOfSlicesAndModes) {
  Draw draw(4);
  int impossible = 0, secondMode = 0;
  for (int round = 0; round < 900; ++round) {
    const CostKind kind = kinds[round % 4];
    const int modes = 1 + draw.below(3);
    std::vector<int64_t> lengths = {1 + draw.below(modes > 2 ? 4 : 6)};
    if (draw.below(2))
      lengths.push_back(draw.below(2) ? lengths[0] : 1 + draw.below(4));
    SliceProblem problem =
        problemOf(lengths, drawCosts(round, kind, modes), 1 + draw.below(6));
    problem.options.mostJoined = 1 + draw.below(2);
    problem.options.sliceBytes = 3 + draw.below(24);
    if (draw.below(3) == 0)
      problem.options.sliceTokens = 1 + draw.below(4);
    if (lengths.size() == 2 && draw.below(3) == 0)
      problem.bundles = {{1}};
    if (!expectBest(problem, kind == CostKind::Integers)) {
      ++impossible;
      continue;
    }
    auto plan = sliceTokens(problem);
    for (const SampleCut &cut : plan->cuts)
      for (const TokenSlice &slice : cut.slices)
        secondMode += slice.mode > 0;
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GE(impossible, 50);
  EXPECT_GE(secondMode, 200);
}

TEST(SliceTokensTest, LimitOfAllBytes) {
  Draw draw(5);
  int impossible = 0, limited = 0;
  for (int round = 0; round < 700; ++round) {
    const CostKind kind = kinds[round % 4];
    const int modes = 1 + draw.below(3);
    std::vector<int64_t> lengths = {1 + draw.below(modes > 2 ? 4 : 5)};
    while (draw.below(2) && lengths.size() < 3)
      lengths.push_back(draw.below(2) ? lengths[0] : 1 + draw.below(3));
    if (lengths.size() > 2 && modes > 2)
      lengths.pop_back();
    // Samples with and without a rest.
    const int64_t grain = 1 + draw.below(2);
    for (int64_t &length : lengths)
      length = std::max<int64_t>(1, length * grain - draw.below(2));
    SliceProblem problem = problemOf(lengths, drawCosts(round, kind, modes),
                                     1 + draw.below(6), grain);
    problem.options.mostJoined = 1 + draw.below(2);
    problem.options.joinsDirections = draw.below(3) == 0;
    if (lengths.size() >= 2 && draw.below(3) == 0)
      problem.bundles = {{1}};
    auto free = sliceTokens(problem);
    ASSERT_TRUE(free.isOk());
    problem.options.totalBytes = std::max<int64_t>(
        1, free->bytes - draw.below(static_cast<int>(free->bytes)));
    if (!expectBest(problem, kind == CostKind::Integers)) {
      ++impossible;
      continue;
    }
    limited += sliceTokens(problem)->objective > free->objective;
    ASSERT_FALSE(HasFailure()) << "round " << round;
  }
  EXPECT_GE(impossible, 50);
  EXPECT_GE(limited, 120);
}

/// The same as `bestOfAllCaps`, with the sum of bytes as a second index.
double bestWithinBytes(const SliceProblem &problem) {
  const int64_t length = problem.lengths[0], most = problem.options.totalBytes;
  constexpr double infinity = std::numeric_limits<double>::infinity();
  std::set<double> forwards, backwards;
  auto visit = [&](int64_t end,
                   const std::function<void(int64_t, const SliceCost &)> &see) {
    for (int64_t begin = 0; begin < end; ++begin)
      for (int mode = 0; mode < problem.costs.modes; ++mode)
        see(begin, problem.costs.slice({1, begin, end - begin, mode}));
  };
  for (int64_t end = 1; end <= length; ++end)
    visit(end, [&](int64_t, const SliceCost &cost) {
      forwards.insert(cost.forward);
      backwards.insert(cost.backward);
    });
  double best = infinity;
  for (double forward : forwards)
    for (double backward : backwards) {
      std::vector<std::vector<double>> sums(
          length + 1, std::vector<double>(most + 1, infinity));
      sums[0].assign(most + 1, 0);
      for (int64_t end = 1; end <= length; ++end)
        visit(end, [&](int64_t begin, const SliceCost &cost) {
          if (cost.forward > forward || cost.backward > backward)
            return;
          for (int64_t bytes = cost.bytes; bytes <= most; ++bytes)
            sums[end][bytes] =
                std::min(sums[end][bytes], sums[begin][bytes - cost.bytes] +
                                               (cost.forward + cost.backward));
        });
      best = std::min(best, sums[length][most] + (problem.options.stages - 1) *
                                                     (forward + backward));
    }
  return best;
}

TEST(SliceTokensTest, NoPairOfCapsIsBetterWithinBytes) {
  Draw draw(6);
  for (int round = 0; round < 24; ++round) {
    SliceProblem problem = problemOf(
        {5 + draw.below(5)}, drawCosts(round, kinds[round % 4], 2 + round % 2),
        1 + draw.below(9));
    auto free = sliceTokens(problem);
    ASSERT_TRUE(free.isOk());
    problem.options.totalBytes = free->bytes * (55 + draw.below(40)) / 100;
    const double best = bestWithinBytes(problem);
    auto plan = sliceTokens(problem);
    ASSERT_EQ(plan.isOk(), best < 1e300) << plan.status().message();
    if (!plan.isOk())
      continue;
    checkPlan(problem, *plan);
    EXPECT_NEAR(plan->objective, best, 1e-12 * best) << "round " << round;
  }
}

/// The largest limits and bytes that there may be.
TEST(SliceTokensTest, MostBytes) {
  SliceCosts costs;
  costs.modes = 2;
  costs.slice = [](const SliceShape &shape) {
    return SliceCost{1.0 + shape.mode, 1,
                     (INT64_C(1) << 53) - shape.mode * (shape.tokens % 2)};
  };
  SliceProblem problem = problemOf({4}, costs, 50);
  for (int64_t limit : {unlimited - 1, INT64_C(1) << 55, (INT64_C(1) << 55) - 1,
                        (INT64_C(1) << 55) - 4}) {
    problem.options.totalBytes = limit;
    ASSERT_TRUE(expectBest(problem, true)) << limit;
  }
}

/// Of modes that cost the same the first one is taken.
TEST(SliceTokensTest, EqualModes) {
  SliceCosts costs = drawCosts(1, CostKind::Monotone, 1);
  costs.modes = 3;
  costs.slice = [slice = costs.slice](SliceShape shape) {
    shape.mode = 0;
    return slice(shape);
  };
  SliceProblem problem = problemOf({20}, costs, 4);
  for (int64_t limit : {unlimited, unlimited - 1}) {
    problem.options.totalBytes = limit;
    auto plan = sliceTokens(problem);
    ASSERT_TRUE(plan.isOk());
    for (const TokenSlice &slice : plan->cuts[0].slices)
      EXPECT_EQ(slice.mode, 0);
  }
}

/// A limit is met exactly, without another program.
TEST(SliceTokensTest, BytesAtTheLimit) {
  SliceProblem problem =
      problemOf({20}, drawCosts(1, CostKind::Monotone, 2), 4);
  auto free = sliceTokens(problem);
  ASSERT_TRUE(free.isOk());
  problem.options.totalBytes = free->bytes;
  auto plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->objective, free->objective);
  EXPECT_EQ(plan->tried, free->tried);
  problem.options.totalBytes = free->bytes - 1;
  plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk());
  EXPECT_GT(plan->objective, free->objective);
  EXPECT_LT(plan->bytes, free->bytes);
}

/// The best plan lies on no price of a byte: 0 and 10 seconds more for one byte each
/// would be chosen before 9 seconds for two.
TEST(SliceTokensTest, BytesAreNoPrice) {
  SliceCosts costs;
  costs.modes = 3;
  costs.slice = [](const SliceShape &shape) {
    const double seconds[] = {1, 8, 9};
    const int64_t bytes[] = {10, 5, 0};
    return SliceCost{seconds[shape.mode], 0, bytes[shape.mode]};
  };
  SliceProblem problem = problemOf({1, 1}, costs, 1);
  problem.options.totalBytes = 10;
  auto plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->sum, 10);
  problem.options.totalBytes = 9;
  plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk());
  // No price makes the middle mode part of a smallest sum.
  EXPECT_EQ(plan->sum, 17);
  EXPECT_EQ(plan->bytes, 5);
}

/// Section 3.3: longer slices first, as later tokens have more to look at.
TEST(SliceTokensTest, LongSlicesComeFirst) {
  SliceCosts costs;
  costs.slice = [](const SliceShape &shape) {
    const auto begin = static_cast<double>(shape.begin),
               tokens = static_cast<double>(shape.tokens);
    SliceCost cost;
    cost.forward = 20 + tokens + tokens * (begin + tokens / 2) / 100;
    cost.backward = 2 * cost.forward;
    return cost;
  };
  auto plan = sliceTokens(problemOf({1024}, costs, 16, 8));
  ASSERT_TRUE(plan.isOk());
  const std::vector<TokenSlice> &slices = plan->cuts[0].slices;
  ASSERT_GE(slices.size(), 5U);
  for (size_t slice = 1; slice < slices.size(); ++slice)
    EXPECT_LE(slices[slice].tokens, slices[slice - 1].tokens + 8);
  EXPECT_GE(slices[0].tokens, 2 * slices.back().tokens);
}

TEST(SliceTokensTest, OneStageHasNoFill) {
  SliceProblem problem =
      problemOf({9, 7}, drawCosts(3, CostKind::Monotone, 1), 1);
  auto plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk());
  EXPECT_EQ(plan->objective, plan->sum);
  EXPECT_EQ(plan->tried, 1);
}

TEST(SliceTokensTest, NothingToSlice) {
  SliceProblem problem = problemOf({}, drawCosts(3, CostKind::Reals, 1), 4);
  auto plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_EQ(plan->objective, 0);
  problem.lengths = {4, 5};
  problem.bundles = {{1, 0}};
  plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_TRUE(plan->cuts.empty());
  EXPECT_THAT(plan->bundles.at(0).samples, ElementsAre(1, 0));
}

/// Costs of nothing, costs that all are equal, and costs far apart.
TEST(SliceTokensTest, CostsAtTheEnds) {
  for (double small : {0.0, 1e-300, 1.0})
    for (double large : {0.0, 1.0, 1e18}) {
      SliceCosts costs;
      costs.slice = [=](const SliceShape &shape) {
        return SliceCost{shape.tokens % 2 ? small : large,
                         shape.begin % 3 ? large : small, 0};
      };
      for (int stages : {1, 2, 7}) {
        SliceProblem problem = problemOf({7, 7, 4}, costs, stages);
        ASSERT_TRUE(expectBest(problem, small == 0.0 || small == large))
            << small << " " << large;
      }
    }
}

std::string failure(const SliceProblem &problem, StatusCode code) {
  auto plan = sliceTokens(problem);
  EXPECT_EQ(plan.status().code(), code);
  return plan.status().message();
}

TEST(SliceTokensTest, BadNumbersAreNamed) {
  const SliceProblem good =
      problemOf({8, 4}, drawCosts(1, CostKind::Monotone, 2), 4, 2);
  ASSERT_TRUE(sliceTokens(good).isOk());
  constexpr StatusCode bad = StatusCode::InvalidArgument;
  SliceProblem problem = good;
  problem.options.stages = 0;
  EXPECT_THAT(failure(problem, bad), HasSubstr("for 0 stages"));
  problem = good;
  problem.options.grain = 0;
  EXPECT_THAT(failure(problem, bad), HasSubstr("grain 0"));
  problem = good;
  problem.options.mostJoined = 0;
  EXPECT_THAT(failure(problem, bad), HasSubstr("0 samples joined"));
  problem = good;
  problem.costs.modes = 0;
  EXPECT_THAT(failure(problem, bad), HasSubstr("0 modes"));
  problem = good;
  problem.options.sliceTokens = 0;
  EXPECT_THAT(failure(problem, bad), HasSubstr("at most 0 tokens"));
  problem = good;
  problem.costs.slice = nullptr;
  EXPECT_THAT(failure(problem, bad), HasSubstr("no function"));
  problem = good;
  problem.lengths[1] = 0;
  EXPECT_THAT(failure(problem, bad), HasSubstr("sample 1 has 0 tokens"));
  problem = good;
  problem.lengths[1] = INT64_C(1) << 40;
  EXPECT_THAT(failure(problem, bad), HasSubstr("choose a larger grain"));
}

TEST(SliceTokensTest, BadBundlesAreNamed) {
  const SliceProblem good =
      problemOf({8, 4}, drawCosts(1, CostKind::Monotone, 1), 4);
  constexpr StatusCode bad = StatusCode::InvalidArgument;
  SliceProblem problem = good;
  problem.bundles = {{2}};
  EXPECT_THAT(failure(problem, bad), HasSubstr("sample 2"));
  problem.bundles = {{-1}};
  EXPECT_THAT(failure(problem, bad), HasSubstr("sample -1"));
  problem.bundles = {{1}, {0, 1}};
  EXPECT_THAT(failure(problem, bad), HasSubstr("sample 1, which is"));
  problem.bundles = {{}};
  EXPECT_THAT(failure(problem, bad), HasSubstr("without samples"));
  problem.bundles = {{1}};
  problem.costs.bundle = nullptr;
  EXPECT_THAT(failure(problem, bad), HasSubstr("no function for their costs"));
}

TEST(SliceTokensTest, CostsThatAreNoSecondsAreNamed) {
  const double infinity = std::numeric_limits<double>::infinity();
  for (double seconds : {-1.0, std::nan(""), infinity, 2e18})
    for (bool backward : {false, true}) {
      SliceProblem problem = problemOf({8}, {}, 4);
      problem.costs.slice = [=](const SliceShape &shape) {
        SliceCost cost;
        if (shape.begin == 3 && shape.tokens == 2)
          (backward ? cost.backward : cost.forward) = seconds;
        return cost;
      };
      EXPECT_THAT(failure(problem, StatusCode::InvalidArgument),
                  HasSubstr("a slice of 2 tokens after 3 tokens of 1 samples"));
      problem.bundles = {{0}};
      problem.costs.bundle = [=](const std::vector<int64_t> &, int) {
        return SliceCost{seconds, 0, 0};
      };
      EXPECT_THAT(failure(problem, StatusCode::InvalidArgument),
                  HasSubstr("a bundle of 1 samples"));
    }
  SliceProblem problem = problemOf({8}, {}, 4);
  problem.costs.slice = [](const SliceShape &) { return SliceCost{1, 1, -5}; };
  EXPECT_THAT(failure(problem, StatusCode::InvalidArgument),
              HasSubstr("keeps -5 bytes"));
  problem.costs.slice = [](const SliceShape &) {
    return SliceCost{1, 1, (INT64_C(1) << 53) + 1};
  };
  EXPECT_THAT(failure(problem, StatusCode::InvalidArgument),
              HasSubstr("0 to 2^53 bytes"));
}

TEST(SliceTokensTest, WhatDoesNotFitIsNamed) {
  constexpr StatusCode full = StatusCode::ResourceExhausted;
  SliceProblem problem = problemOf({3, 10}, {}, 4, 2);
  problem.costs.slice = [](const SliceShape &shape) {
    // Keys of earlier tokens count.
    return SliceCost{1, 1, 1024 * (shape.begin + shape.tokens)};
  };
  problem.options.sliceBytes = 7 * 1024;
  EXPECT_THAT(failure(problem, full),
              HasSubstr("sample 1 has no cut: a slice of 2 tokens after token "
                        "6 keeps 8.0 KiB, but a slice may have 7.0 KiB"));
  problem.options.sliceBytes = unlimited;
  problem.options.sliceTokens = 1;
  EXPECT_THAT(failure(problem, full), HasSubstr("and 1 tokens"));
  problem.options.sliceTokens = unlimited;
  problem.options.totalBytes = 12 * 1024;
  EXPECT_THAT(failure(problem, full),
              HasSubstr("keep at least 13.0 KiB, but the limit is 12.0 KiB"));
  problem.options.totalBytes = unlimited;
  problem.bundles = {{0}};
  problem.costs.bundle = [](const std::vector<int64_t> &, int) {
    return SliceCost{1, 1, 2048};
  };
  problem.options.sliceBytes = 1024;
  EXPECT_THAT(failure(problem, full),
              HasSubstr("bundle 0 keeps 2.0 KiB, but the limit is 1.0 KiB"));
}

TEST(SliceTokensTest, PlansWithGapsAreRefused) {
  SliceProblem problem =
      problemOf({8, 8, 6}, drawCosts(1, CostKind::Monotone, 1), 4, 2);
  auto plan = sliceTokens(problem);
  ASSERT_TRUE(plan.isOk());
  auto refused = [&](const std::function<void(SlicePlan &)> &change) {
    SlicePlan broken = *plan;
    change(broken);
    Status status = timeSlices(problem, broken);
    EXPECT_EQ(status.code(), StatusCode::InvalidArgument);
    return status.message();
  };
  EXPECT_THAT(refused([](SlicePlan &p) { p.cuts.pop_back(); }),
              HasSubstr("is in no cut"));
  EXPECT_THAT(refused([](SlicePlan &p) { p.cuts.push_back(p.cuts[0]); }),
              HasSubstr("already"));
  EXPECT_THAT(refused([](SlicePlan &p) { p.cuts[0].slices.pop_back(); }),
              HasSubstr("but it has"));
  EXPECT_THAT(refused([](SlicePlan &p) { p.cuts[0].slices.push_back({2, 0}); }),
              HasSubstr("its next slice has 2"));
  EXPECT_THAT(
      refused([](SlicePlan &p) { p.cuts[0].slices = {{1, 0}, {5, 0}}; }),
      HasSubstr("no multiple of the grain 2"));
  EXPECT_THAT(refused([](SlicePlan &p) { p.cuts[0].slices[0].mode = 1; }),
              HasSubstr("mode 1 of 1"));
  EXPECT_THAT(refused([](SlicePlan &p) {
                p.cuts[0].samples.push_back(p.cuts[1].samples[0]);
                p.cuts.erase(p.cuts.begin() + 1);
              }),
              HasSubstr("is joined with one of"));
  EXPECT_THAT(refused([](SlicePlan &p) { p.bundles.push_back({{}, 0}); }),
              HasSubstr("without samples"));
}

} // namespace
