//===- CutsByCostTest.cpp - Slices by the closed form ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/cut/SliceMicroBatches.h"
#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/planner/slice/SliceBaselines.h"
#include "runtime/planner/slice/SliceTokens.h"
#include "test/runtime/planner/AttendingModel.h"
#include "test/runtime/planner/Draw.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <set>

using namespace dyna;

namespace {

/// Cuts by the closed form alone, where pairs cost much more than tokens: a cut that does
/// not know its context is a bad one.
class CutsByCostTest : public testing::Test {
protected:
  using Whole = std::vector<plan::MicroBatch>;

  SliceCost costOf(const Load &load) const {
    SliceCost cost;
    for (int stage : {0, 1}) {
      cost.forward = std::max(cost.forward, tables_.forward(stage, load));
      cost.backward = std::max(cost.backward, tables_.backward(stage, load));
    }
    cost.forward += times_.message(load);
    cost.backward += times_.message(load);
    return cost;
  }
  double secondsOf(const MicroBatches &cut) const {
    double sum = 0, forward = 0, backward = 0;
    for (const plan::MicroBatch &microBatch : cut) {
      const SliceCost cost = costOf(loadOf(microBatch));
      sum += cost.forward + cost.backward;
      forward = std::max(forward, cost.forward);
      backward = std::max(backward, cost.backward);
    }
    return sum + forward + backward;
  }
  /// One slice after the other, of samples of these lengths; none of tokens below 1.
  static Whole slicesOf(const std::vector<std::vector<int64_t>> &samples) {
    Whole cut;
    for (size_t sample = 0; sample < samples.size(); ++sample) {
      int64_t begin = 0;
      for (int64_t tokens : samples[sample]) {
        cut.push_back({{{static_cast<int64_t>(sample), begin, tokens}}, 0});
        begin += tokens;
      }
    }
    return cut;
  }
  MicroBatches cutOf(const Whole &whole, const char *words,
                     int64_t mostChunk = 4096) const {
    auto cut = slicesByPolicy(whole, times_, 1, *parseSlices(words), mostChunk);
    EXPECT_TRUE(cut.isOk()) << cut.status().message();
    return *cut;
  }
  std::vector<TimedCut> cutsOf(const Whole &whole, int replicas = 1) const {
    auto cuts = slicesByCost(whole, times_, replicas);
    EXPECT_TRUE(cuts.isOk()) << cuts.status().message();
    return *cuts;
  }

  const Model model_ = attendingModel(/*isCausal=*/true, 1 << 20);
  const CostModel costs_{model_};
  const ExecutableGraph graph_ =
      *ExecutableGraph::create(model_, *parseStrategy("pp=2,layers=3+2"));
  const StageTables tables_{graph_, costs_, automatic(), true, 1 << 14};
  double fixed_ = 0; ///< seconds of each message
  const SliceTimes times_{tables_, {0, 1}, [this](const Load &load) {
                            return fixed_ +
                                   1e-9 * static_cast<double>(load.queries);
                          }};
};

// Every other cut into rows of memory, timed by the loads of its slices, takes as long.
TEST_F(CutsByCostTest, NoCutIsBetterThanTheExactOne) {
  Draw draw(7);
  for (int round = 0; round < 20; ++round) {
    const int64_t length = 33 + draw.below(320);
    const Whole whole = {{{{0, 0, length}}, 0},
                         {{{1, 0, 1 + draw.below(99)}, {2, 0, 30}}, 0}};
    const int gaps = static_cast<int>((length - 1) / DYNA_ROW_ALIGNMENT);
    double best = std::numeric_limits<double>::infinity();
    for (int ends = 0; ends < 1 << gaps; ++ends) {
      std::vector<int64_t> slices = {0};
      for (int unit = 0; unit <= gaps; ++unit) {
        const int64_t begin = static_cast<int64_t>(unit) * DYNA_ROW_ALIGNMENT;
        if (unit > 0 && (ends >> (unit - 1) & 1))
          slices.push_back(0);
        slices.back() += std::min<int64_t>(DYNA_ROW_ALIGNMENT, length - begin);
      }
      Whole cut = slicesOf({slices});
      cut.push_back(whole[1]);
      best = std::min(best, secondsOf(cut));
    }
    EXPECT_NEAR(secondsOf(cutOf(whole, "exact")) / best, 1, 1e-12) << length;
  }
}

// Work counts tokens and visible pairs: here slices of equal work take as long. Later
// ones have fewer tokens.
TEST_F(CutsByCostTest, SlicesOfEqualWorkTakeAsLong) {
  const MicroBatches cut = cutOf({{{{0, 0, 8192}}, 0}}, "seq1f1b:4");
  ASSERT_EQ(cut.size(), 4u);
  const double first = secondsOf({cut[0]});
  for (size_t i = 1; i < cut.size(); ++i) {
    EXPECT_NEAR(secondsOf({cut[i]}) / first, 1, 0.1) << i;
    EXPECT_LT(cut[i].segments[0].length, cut[i - 1].segments[0].length);
  }
}

// As many slices as were asked for, however long the sample is.
TEST_F(CutsByCostTest, SlicesAreAsManyAsAskedFor) {
  for (int64_t length : {1000, 4096, 16000})
    for (int64_t count : {48, 100, 700}) {
      const Whole whole = {{{{0, 0, length}}, 0}};
      const std::string words = formatText("uniform:%d", count);
      const Whole slices = cutOf(whole, words.c_str());
      ASSERT_EQ(slices.size(), static_cast<size_t>(count));
      for (const plan::MicroBatch &slice : slices) {
        EXPECT_GE(slice.segments[0].length, length / count);
        EXPECT_LE(slice.segments[0].length, length / count + 1);
      }
      EXPECT_EQ(cutOf(whole, formatText("seq1f1b:%d", count).c_str()).size(),
                static_cast<size_t>(count));
    }
}

// Where a slice has hardly fixed costs, the largest number of slices that is tried is
// the best, and the smallest chunk.
TEST_F(CutsByCostTest, NumbersAreTriedToTheEnd) {
  const Whole whole = {{{{0, 0, 16384}}, 0}};
  EXPECT_EQ(cutOf(whole, "uniform").size(), 128u);
  EXPECT_EQ(cutOf(whole, "seq1f1b"), cutOf(whole, "seq1f1b:128"));
  EXPECT_EQ(cutOf(whole, "chunkflow"), cutOf(whole, "chunkflow:512"));
  // No slice is smaller than the rows that memory is rounded to.
  EXPECT_EQ(cutOf({{{{0, 0, 2048}}, 0}}, "uniform").size(), 64u);
}

// What `auto` compares: the exact cut, with the fill of the pipeline once and four
// times, alone and behind bundles of each size; equal slices and chunks of each size.
TEST_F(CutsByCostTest, AllKindsOfCutsAreCompared) {
  fixed_ = costOf(loadOfSample(400)).forward;
  const std::vector<int64_t> lengths = {8192, 700, 300, 120, 40};
  const Whole whole = {{{{0, 0, 8192}}, 0},
                       {{{1, 0, 700}, {4, 0, 40}}, 0},
                       {{{2, 0, 300}, {3, 0, 120}}, 0}};
  const std::vector<TimedCut> cuts = cutsOf(whole);
  const auto isCompared = [&](const MicroBatches &cut) {
    return std::any_of(cuts.begin(), cuts.end(),
                       [&](const TimedCut &one) { return one.cut == cut; });
  };
  const auto exact = [&](std::vector<std::vector<int64_t>> bundles,
                         int stages) {
    SliceProblem problem;
    problem.lengths = lengths;
    problem.bundles = std::move(bundles);
    problem.options.stages = stages;
    problem.options.grain = 128; // 1/64 of the longest sample
    problem.costs.slice = [&](const SliceShape &shape) {
      return costOf(loadOf(TokenRange{shape.begin, shape.tokens},
                           TokenRange{0, shape.begin + shape.tokens}));
    };
    problem.costs.bundle = [&](const std::vector<int64_t> &own, int) {
      Load load;
      for (int64_t length : own)
        load += loadOfSample(length);
      return costOf(load);
    };
    const SlicePlan plan = *sliceTokens(problem);
    MicroBatches cut;
    for (const SampleCut &one : plan.cuts) {
      int64_t begin = 0;
      for (const TokenSlice &slice : one.slices) {
        cut.push_back({{{one.samples[0], begin, slice.tokens}}, 0});
        begin += slice.tokens;
      }
    }
    for (const SliceBundle &bundle : plan.bundles) {
      plan::MicroBatch &microBatch = cut.emplace_back();
      for (int64_t sample : bundle.samples)
        microBatch.segments.push_back({sample, 0, lengths[sample]});
    }
    return cut;
  };
  for (int stages : {2, 5})
    EXPECT_TRUE(isCompared(exact({{1, 4}, {2, 3}}, stages))) << stages;
  EXPECT_FALSE(exact({{1, 4}, {2, 3}}, 2) == exact({{1, 4}, {2, 3}}, 5));
  for (int64_t tokens = 4096; tokens >= 128; tokens /= 2) {
    SCOPED_TRACE(tokens);
    SliceChoice equal;
    equal.lengths = {tokens};
    EXPECT_TRUE(isCompared(sliceMicroBatches(whole, equal)));
    EXPECT_TRUE(
        isCompared(cutOf(whole, formatText("chunkflow:%d", tokens).c_str())));
    for (int stages : {2, 5})
      EXPECT_TRUE(isCompared(exact(packBundles(lengths, tokens), stages)));
  }
}

// Smaller bundles alone are no slices.
TEST_F(CutsByCostTest, EveryCutHasSlices) {
  Whole whole(1);
  for (int64_t sample = 0; sample < 8; ++sample)
    whole[0].segments.push_back({sample, 0, 512});
  const std::vector<TimedCut> cuts = cutsOf(whole);
  EXPECT_FALSE(cuts.empty());
  for (const TimedCut &one : cuts)
    EXPECT_TRUE(std::any_of(one.cut.begin(), one.cut.end(), continuesSample));
}

// Slices are timed by the clock for the replica that takes longest alone.
TEST_F(CutsByCostTest, TheSlowestReplicaIsKnown) {
  for (int slow : {0, 1}) {
    const std::vector<TimedCut> cuts =
        cutsOf({{{{0, 0, slow == 0 ? 9000 : 4000}}, 0},
                {{{1, 0, slow == 1 ? 9000 : 4000}}, 1}},
               /*replicas=*/2);
    ASSERT_FALSE(cuts.empty());
    for (const TimedCut &one : cuts) {
      MicroBatches own;
      for (const plan::MicroBatch &microBatch : one.cut)
        if (microBatch.replica == slow)
          own.push_back(microBatch);
      EXPECT_EQ(one.slowest, slow);
      EXPECT_NEAR(one.seconds, secondsOf(own), 1e-12);
    }
  }
}

} // namespace
