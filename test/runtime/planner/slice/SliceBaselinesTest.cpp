//===- SliceBaselinesTest.cpp - Published cuts against what they say ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/SliceBaselines.h"
#include "runtime/planner/slice/SliceTokens.h"
#include "test/runtime/planner/slice/SliceCases.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr CostKind kinds[] = {CostKind::Integers, CostKind::Reals,
                              CostKind::Monotone, CostKind::Steps};

std::vector<int64_t> tokensOf(const SampleCut &cut) {
  std::vector<int64_t> tokens;
  for (const TokenSlice &slice : cut.slices)
    tokens.push_back(slice.tokens);
  return tokens;
}

std::vector<int> modesOf(const SampleCut &cut) {
  std::vector<int> modes;
  for (const TokenSlice &slice : cut.slices)
    modes.push_back(slice.mode);
  return modes;
}

/// All t of slices of so many joined samples of one length.
std::set<double> totalsOf(const SliceProblem &problem, int64_t length,
                          int64_t joined) {
  std::set<double> totals;
  for (int64_t begin = 0; begin < length; ++begin)
    for (int64_t tokens = 1; tokens <= length - begin; ++tokens) {
      SliceCost cost = problem.costs.slice({joined, begin, tokens, 0});
      totals.insert(cost.forward + cost.backward);
    }
  return totals;
}

/// Caps as the paper tries them; `sumOf` returns the smallest sum below a cap.
double bestOfCaps(const std::set<double> &caps, int stages, double epsilon,
                  const std::function<double(double)> &sumOf) {
  double best = infinity, last = -infinity;
  for (double cap : caps) {
    if (stages * cap > best)
      break;
    if (cap - last < epsilon)
      continue;
    last = cap;
    best = std::min(best, sumOf(cap) + (stages - 1) * cap);
  }
  if (best == infinity)
    best = sumOf(*caps.rbegin()) + (stages - 1) * *caps.rbegin();
  return best;
}

SliceProblem drawProblem(Draw &draw, int round, bool bundled) {
  SliceProblem problem;
  problem.costs = drawCosts(round, kinds[round % 4], 1);
  problem.options.stages = 1 + draw.below(8);
  problem.options.mostJoined = 1 + draw.below(3);
  problem.lengths = {1 + draw.below(5), 1 + draw.below(4)};
  problem.lengths.push_back(problem.lengths[0]);
  if (bundled && draw.below(2))
    problem.bundles = {{1}};
  return problem;
}

/// One cap for all: the smallest sum of all plans below it, for each cap.
TEST(SliceBaselinesTest, PaperCodeTriesCapsForAllCuts) {
  Draw draw(1);
  int worse = 0;
  for (int round = 0; round < 400; ++round) {
    SliceProblem problem = drawProblem(draw, round, true);
    const double epsilon = draw.below(3) * 0.7;
    std::vector<SliceSums> all;
    visitPlans(problem, [&](const SliceSums &sums) { all.push_back(sums); });
    std::set<double> caps;
    for (int64_t joined = 1; joined <= problem.options.mostJoined; ++joined)
      for (int64_t length : {problem.lengths[0], problem.lengths[1]}) {
        const bool isWhole = !problem.bundles.empty();
        const int64_t count = (length == problem.lengths[0] ? 2 : 0) +
                              (length == problem.lengths[1] && !isWhole);
        if (count >= joined)
          for (double total : totalsOf(problem, length, joined))
            caps.insert(total);
      }
    if (!problem.bundles.empty()) {
      SliceCost cost = problem.costs.bundle({problem.lengths[1]}, 0);
      caps.insert(cost.forward + cost.backward);
    }
    const double best =
        bestOfCaps(caps, problem.options.stages, epsilon, [&](double cap) {
          double sum = infinity;
          for (const SliceSums &sums : all)
            if (sums.total <= cap)
              sum = std::min(sum, sums.sum);
          return sum;
        });
    auto plan = sliceByPaperCode(problem, epsilon);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    EXPECT_NEAR(plan->estimate, best, 1e-12 * best) << "round " << round;
    problem.options.joinsDirections = true;
    EXPECT_GE(plan->estimate * (1 + 1e-12), bestOfAllPlans(problem));
    worse += plan->estimate > bestOfAllPlans(problem) * (1 + 1e-9);
    if (epsilon == 0) {
      EXPECT_NEAR(plan->estimate, bestOfAllPlans(problem), 1e-12 * best);
    }
  }
  EXPECT_GE(worse, 30);
}

/// The best time of a cut of joined samples alone, as the paper finds it.
double timeAlone(const SliceProblem &problem, int64_t length, int64_t joined,
                 double epsilon) {
  SliceProblem own;
  own.costs = problem.costs;
  own.options.mostJoined = joined;
  own.lengths.assign(joined, length);
  std::vector<SliceSums> all;
  // Plans whose slices all have the joined samples: no others are drawn.
  own.costs.slice = [&](const SliceShape &shape) {
    SliceCost cost = problem.costs.slice(shape);
    if (shape.samples != joined)
      cost.forward = infinity;
    return cost;
  };
  visitPlans(own, [&](const SliceSums &sums) { all.push_back(sums); });
  return bestOfCaps(totalsOf(problem, length, joined), problem.options.stages,
                    epsilon, [&](double cap) {
                      double sum = infinity;
                      for (const SliceSums &sums : all)
                        if (sums.total <= cap)
                          sum = std::min(sum, sums.sum);
                      return sum;
                    });
}

double bestKnapsack(const std::vector<double> &times, size_t count) {
  if (count == 0)
    return 0;
  double best = infinity;
  for (size_t joined = 1; joined <= std::min(count, times.size()); ++joined)
    best =
        std::min(best, times[joined - 1] + bestKnapsack(times, count - joined));
  return best;
}

TEST(SliceBaselinesTest, PaperTriesCapsForEachNumberOfSamples) {
  Draw draw(2);
  for (int round = 0; round < 300; ++round) {
    SliceProblem problem = drawProblem(draw, round, true);
    const double epsilon = draw.below(3) * 0.7;
    std::map<int64_t, size_t> counts = {{problem.lengths[0], 2}};
    double expected = 0;
    if (problem.bundles.empty()) {
      ++counts[problem.lengths[1]];
    } else {
      SliceCost cost = problem.costs.bundle({problem.lengths[1]}, 0);
      expected += problem.options.stages * (cost.forward + cost.backward);
    }
    for (auto [length, count] : counts) {
      std::vector<double> times;
      for (int64_t joined = 1; joined <= problem.options.mostJoined; ++joined)
        times.push_back(timeAlone(problem, length, joined, epsilon));
      expected += bestKnapsack(times, count);
    }
    auto plan = sliceByPaper(problem, epsilon);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    EXPECT_NEAR(plan->estimate, expected, 1e-12 * expected)
        << "round " << round;
    problem.options.joinsDirections = true;
    ASSERT_TRUE(timeSlices(problem, *plan).isOk());
    // The estimate counts the fill once for each cut.
    EXPECT_LE(plan->objective, plan->estimate * (1 + 1e-12));
  }
}

TEST(SliceBaselinesTest, UniformSlicesDifferByOneUnit) {
  SliceProblem problem;
  problem.costs = drawCosts(1, CostKind::Monotone, 1);
  problem.options.grain = 8;
  problem.lengths = {80, 83, 5, 16};
  auto plan = sliceUniformly(problem, 4);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  EXPECT_THAT(tokensOf(plan->cuts[0]), ElementsAre(24, 16, 24, 16));
  EXPECT_THAT(tokensOf(plan->cuts[1]), ElementsAre(24, 24, 24, 11));
  EXPECT_THAT(tokensOf(plan->cuts[2]), ElementsAre(5));
  EXPECT_THAT(tokensOf(plan->cuts[3]), ElementsAre(8, 8));
  for (int64_t length = 1; length < 200; ++length)
    for (int64_t slices = 1; slices < 12; ++slices) {
      problem.lengths = {length};
      plan = sliceUniformly(problem, slices);
      ASSERT_TRUE(plan.isOk()) << plan.status().message();
      const std::vector<int64_t> tokens = tokensOf(plan->cuts[0]);
      const int64_t units = (length + 7) / 8;
      ASSERT_EQ(static_cast<int64_t>(tokens.size()), std::min(slices, units));
      int64_t least = units, most = 0;
      for (int64_t each : tokens) {
        least = std::min(least, (each + 7) / 8);
        most = std::max(most, (each + 7) / 8);
      }
      EXPECT_LE(most, least + 1);
    }
}

/// Each end is the nearest one of all that are free.
TEST(SliceBaselinesTest, EqualWorkIsNearest) {
  Draw draw(3);
  for (int round = 0; round < 600; ++round) {
    SliceProblem problem;
    problem.costs = drawCosts(1, CostKind::Monotone, 1);
    const int64_t grain = 1 + draw.below(4);
    problem.options.grain = grain;
    const int64_t length = 1 + draw.below(60),
                  units = (length + grain - 1) / grain;
    problem.lengths = {length};
    const int64_t slices = 1 + draw.below(8), count = std::min(slices, units);
    SliceWork work;
    work.perToken = draw.below(20);
    work.perPair = draw.below(3) + (work.perToken == 0);
    auto plan = sliceByWork(problem, slices, work);
    ASSERT_TRUE(plan.isOk()) << plan.status().message();
    auto until = [&](int64_t tokens) {
      double sum = 0;
      for (int64_t token = 0; token < tokens; ++token)
        sum += work.perToken + work.perPair * static_cast<double>(token + 1);
      return sum;
    };
    const std::vector<int64_t> tokens = tokensOf(plan->cuts[0]);
    ASSERT_EQ(static_cast<int64_t>(tokens.size()), count);
    int64_t before = 0;
    for (int64_t slice = 1; slice <= count; ++slice) {
      const double aim = until(length) * static_cast<double>(slice) /
                         static_cast<double>(count);
      int64_t nearest = before + 1;
      for (int64_t end = before + 1; end <= units - (count - slice); ++end)
        if (std::abs(until(std::min(end * grain, length)) - aim) <
            std::abs(until(std::min(nearest * grain, length)) - aim))
          nearest = end;
      EXPECT_EQ(tokens[slice - 1],
                std::min(nearest * grain, length) - before * grain);
      before = nearest;
    }
  }
}

TEST(SliceBaselinesTest, ChunksOfLongAndShortSamples) {
  SliceProblem problem;
  problem.costs = drawCosts(1, CostKind::Monotone, 3);
  problem.options.grain = 4;
  problem.lengths = {3, 40, 9, 16, 7, 6, 33};
  ChunkOptions chunks;
  chunks.tokens = 16;
  chunks.kept = 1;
  chunks.droppedMode = 2;
  auto plan = sliceInChunks(problem, chunks);
  ASSERT_TRUE(plan.isOk()) << plan.status().message();
  ASSERT_EQ(plan->cuts.size(), 2U);
  EXPECT_THAT(plan->cuts[0].samples, ElementsAre(1));
  EXPECT_THAT(tokensOf(plan->cuts[0]), ElementsAre(16, 16, 8));
  EXPECT_THAT(modesOf(plan->cuts[0]), ElementsAre(2, 2, 0));
  EXPECT_THAT(tokensOf(plan->cuts[1]), ElementsAre(16, 16, 1));
  // 16 | 9 + 7 | 6 + 3
  ASSERT_EQ(plan->bundles.size(), 3U);
  EXPECT_THAT(plan->bundles[0].samples, ElementsAre(3));
  EXPECT_THAT(plan->bundles[1].samples, ElementsAre(2, 4));
  EXPECT_THAT(plan->bundles[2].samples, ElementsAre(5, 0));
  chunks.kept = 2;
  plan = sliceInChunks(problem, chunks);
  EXPECT_THAT(modesOf(plan->cuts[0]), ElementsAre(2, 0, 0));
  chunks.kept = 7;
  plan = sliceInChunks(problem, chunks);
  EXPECT_THAT(modesOf(plan->cuts[0]), ElementsAre(0, 0, 0));
}

TEST(SliceBaselinesTest, NoBaselineIsBetterThanTheBestPlan) {
  Draw draw(4);
  std::map<std::string, int> worse;
  for (int round = 0; round < 400; ++round) {
    SliceProblem problem = drawProblem(draw, round, false);
    for (int64_t &length : problem.lengths)
      length *= 2;
    problem.options.grain = 1 + draw.below(2);
    auto best = sliceTokens(problem);
    ASSERT_TRUE(best.isOk());
    auto compare = [&](const char *name, const StatusOr<SlicePlan> &plan) {
      ASSERT_TRUE(plan.isOk()) << name << ": " << plan.status().message();
      SlicePlan again = *plan;
      ASSERT_TRUE(timeSlices(problem, again).isOk());
      EXPECT_EQ(again.objective, plan->objective) << name;
      EXPECT_GE(plan->objective * (1 + 1e-12), best->objective) << name;
      worse[name] += plan->objective > best->objective * (1 + 1e-9);
    };
    compare("paper", sliceByPaper(problem));
    compare("paper's code", sliceByPaperCode(problem));
    const int64_t slices = 1 + draw.below(5);
    compare("uniform", sliceUniformly(problem, slices));
    compare("work", sliceByWork(problem, slices, {10, 1}));
    // Chunks make bundles of their own, which the best plan then has to keep.
    ChunkOptions chunks;
    chunks.tokens = problem.options.grain * (1 + draw.below(6));
    auto chunked = sliceInChunks(problem, chunks);
    ASSERT_TRUE(chunked.isOk()) << chunked.status().message();
    SliceProblem bundled = problem;
    for (const SliceBundle &bundle : chunked->bundles)
      bundled.bundles.push_back(bundle.samples);
    auto beside = sliceTokens(bundled);
    ASSERT_TRUE(beside.isOk());
    EXPECT_GE(chunked->objective * (1 + 1e-12), beside->objective);
    worse["chunks"] += chunked->objective > beside->objective * (1 + 1e-9);
  }
  for (const char *name :
       {"paper", "paper's code", "uniform", "work", "chunks"})
    EXPECT_GE(worse[name], 20) << name;
}

TEST(SliceBaselinesTest, BadNumbersAreNamed) {
  SliceProblem problem;
  problem.costs = drawCosts(1, CostKind::Monotone, 1);
  problem.lengths = {8, 4};
  problem.options.grain = 4;
  auto refused = [](const StatusOr<SlicePlan> &plan) {
    EXPECT_EQ(plan.status().code(), StatusCode::InvalidArgument);
    return plan.status().message();
  };
  EXPECT_THAT(refused(sliceUniformly(problem, 0)), HasSubstr("0 slices"));
  EXPECT_THAT(refused(sliceByWork(problem, -1, {})), HasSubstr("-1 slices"));
  EXPECT_THAT(refused(sliceByWork(problem, 2, {0, 0})), HasSubstr("work of 0"));
  EXPECT_THAT(refused(sliceByWork(problem, 2, {-1, 2})),
              HasSubstr("work of -1"));
  EXPECT_THAT(refused(sliceByPaper(problem, -1)), HasSubstr("caps -1 s"));
  EXPECT_THAT(refused(sliceByPaperCode(problem, std::nan(""))),
              HasSubstr("caps nan s"));
  EXPECT_THAT(refused(sliceInChunks(problem, {6, 1, 0})),
              HasSubstr("chunks of 6 tokens"));
  EXPECT_THAT(refused(sliceInChunks(problem, {4, -1, 0})),
              HasSubstr("-1 kept"));
  EXPECT_THAT(refused(sliceInChunks(problem, {4, 0, 1})),
              HasSubstr("mode 1 of 1"));
  problem.costs.bundle = nullptr;
  EXPECT_THAT(refused(sliceInChunks(problem, {4, 1, 0})),
              HasSubstr("no function for their costs"));
  problem.lengths[0] = -3;
  for (const auto &plan :
       {sliceUniformly(problem, 2), sliceByWork(problem, 2, {}),
        sliceByPaper(problem), sliceByPaperCode(problem),
        sliceInChunks(problem, {4, 1, 0})})
    EXPECT_THAT(refused(plan), HasSubstr("sample 0 has -3 tokens"));
}

} // namespace
