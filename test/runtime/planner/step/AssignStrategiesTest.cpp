//===- AssignStrategiesTest.cpp - Ranges that merge, against all ways -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/AssignStrategies.h"

#include "runtime/base/text/Text.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <functional>
#include <limits>

using namespace dyna;
using testing::ElementsAre;
using testing::IsEmpty;

namespace {

/// A phase takes `start`, and `perToken` for each of its tokens; a way from home
/// through graphs and back what the table says of each step.
struct SimpleEstimates : StepEstimates {
  std::vector<double> start, perToken;
  std::vector<std::vector<double>> there, back;
  int home = 0;
  mutable int asked = 0;

  SimpleEstimates(int graphs, double switching, int home = 0)
      : start(graphs, 0), perToken(graphs, 1), home(home) {
    for (auto *table : {&there, &back}) {
      table->assign(graphs, std::vector<double>(graphs, switching / 2));
      for (int graph = 0; graph < graphs; ++graph)
        (*table)[graph][graph] = 0;
    }
  }
  double phaseSeconds(int graph, const PhaseLengths &phase) const override {
    ++asked;
    EXPECT_GT(phase.load.segments, 0);
    return start[graph] +
           perToken[graph] * static_cast<double>(phase.load.queries);
  }
  double switchSeconds(const std::vector<int> &graphs) const override {
    EXPECT_FALSE(graphs.empty());
    EXPECT_TRUE(std::is_sorted(graphs.begin(), graphs.end()));
    double seconds = 0;
    int before = home;
    for (int graph : graphs) {
      seconds += there[before][graph] + back[graph][home];
      before = graph;
    }
    return seconds;
  }
};

LengthRanges rangesOf(const std::string &text) {
  return *parseLengthRanges(text, {"s", "m", "l"});
}

TEST(AssignStrategies, SamplesGoByRangeWhereThatIsWorthIt) {
  SimpleEstimates estimates(3, 1);
  estimates.perToken = {1, 2, 3};
  auto assigned = assignSamples(
      {30, 5, 700, 8, 12}, rangesOf("s: 0-16; m: 17-512; l: 513-"), estimates);
  ASSERT_TRUE(assigned.isOk());
  EXPECT_THAT(assigned->samples, ElementsAre(ElementsAre(1, 3, 4),
                                             ElementsAre(0), ElementsAre(2)));
  EXPECT_EQ(assigned->merged, 0);
  EXPECT_DOUBLE_EQ(assigned->phaseSeconds, 25 + 60 + 2100);
  // Two ways there, and from each one back.
  EXPECT_DOUBLE_EQ(assigned->switchSeconds, 2);
}

TEST(AssignStrategies, TooFewSamplesMergeUpwards) {
  SimpleEstimates estimates(3, 40);
  estimates.perToken = {1, 2, 3};
  const LengthRanges ranges = rangesOf("s: 0-16; m: 17-512; l: 513-");
  auto assigned = assignSamples({30, 5, 700, 8, 12}, ranges, estimates);
  ASSERT_TRUE(assigned.isOk());
  EXPECT_THAT(assigned->samples,
              ElementsAre(ElementsAre(1, 3, 4), IsEmpty(), ElementsAre(0, 2)));
  EXPECT_EQ(assigned->merged, 1);
  // Home is reached at the end all the same.
  SimpleEstimates costly(3, 1e4, /*home=*/2);
  costly.perToken = {1, 2, 3};
  assigned = assignSamples({30, 5, 700, 8, 12}, ranges, costly);
  EXPECT_THAT(assigned->samples,
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0, 1, 2, 3, 4)));
  EXPECT_EQ(assigned->merged, 2);
  EXPECT_DOUBLE_EQ(assigned->switchSeconds, 0);
}

// A range without samples is no phase, but may take in shorter ones where its
// graph is the one that is there.
TEST(AssignStrategies, EmptyRangesCostNothing) {
  const LengthRanges ranges = rangesOf("s: 0-16; m: 17-512; l: 513-");
  SimpleEstimates estimates(3, 1);
  estimates.start = {0, 1e6, 1e6};
  auto assigned = assignSamples({5, 6}, ranges, estimates);
  EXPECT_THAT(assigned->samples,
              ElementsAre(ElementsAre(0, 1), IsEmpty(), IsEmpty()));
  EXPECT_DOUBLE_EQ(assigned->seconds(), 11);
  SimpleEstimates home(3, 100, /*home=*/1);
  assigned = assignSamples({5, 6}, ranges, home);
  EXPECT_THAT(assigned->samples,
              ElementsAre(IsEmpty(), ElementsAre(0, 1), IsEmpty()));
  EXPECT_DOUBLE_EQ(assigned->seconds(), 11);
  assigned = assignSamples({}, ranges, home);
  ASSERT_TRUE(assigned.isOk());
  EXPECT_THAT(assigned->samples, ElementsAre(IsEmpty(), IsEmpty(), IsEmpty()));
  EXPECT_EQ(assigned->seconds(), 0);
}

TEST(AssignStrategies, OfEqualTimesFewerPhasesThenLongerRangesAreKept) {
  const LengthRanges ranges = rangesOf("s: 0-16; m: 17-512; l: 513-");
  const SimpleEstimates estimates(3, 0);
  auto assigned = assignSamples({5, 30, 700}, ranges, estimates);
  EXPECT_THAT(assigned->samples,
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0, 1, 2)));
  EXPECT_EQ(assigned->merged, 2);
  // One phase in any case: no sample is moved further than it has to.
  assigned = assignSamples({5, 30}, ranges, estimates);
  EXPECT_THAT(assigned->samples,
              ElementsAre(IsEmpty(), ElementsAre(0, 1), IsEmpty()));
  EXPECT_EQ(assigned->merged, 1);
  // A range without samples has none that merge.
  assigned = assignSamples({5, 700}, ranges, estimates);
  EXPECT_THAT(assigned->samples,
              ElementsAre(IsEmpty(), IsEmpty(), ElementsAre(0, 1)));
  EXPECT_EQ(assigned->merged, 1);
}

TEST(AssignStrategies, LongerSamplesThanAllRangesAreNamed) {
  const LengthRanges ranges = rangesOf("s: 0-16; m: 17-512");
  SimpleEstimates estimates(2, 1);
  for (const auto &assigned : {assignSamples({3, 600}, ranges, estimates),
                               assignByRange({3, 600}, ranges)}) {
    ASSERT_FALSE(assigned.isOk());
    EXPECT_EQ(assigned.status().message(),
              "sample 1 has 600 tokens, but no range has more than 512");
  }
  auto byRange = assignByRange({600 - 100, 3, 16}, ranges);
  EXPECT_THAT(byRange->samples, ElementsAre(ElementsAre(1, 2), ElementsAre(0)));
}

TEST(AssignStrategies, MoreRangesThanCanBeTriedAreRefused) {
  std::vector<LengthRange> many(maxMergedRanges + 1);
  for (int i = 0; i <= maxMergedRanges; ++i)
    many[i] = {"r" + std::to_string(i), i, i, i};
  SimpleEstimates estimates(maxMergedRanges + 1, 1);
  EXPECT_EQ(assignSamples({1}, *LengthRanges::create(many), estimates)
                .status()
                .message(),
            "17 ranges: a step has at most 16");
}

/// Every way to give each range with samples to itself or a longer one, so that
/// a graph which gets samples of shorter ones keeps its own.
double bestOfAll(const std::vector<int64_t> &lengths,
                 const LengthRanges &ranges, const StepEstimates &estimates) {
  const int count = ranges.size();
  std::vector<std::vector<int64_t>> own(count); // by length
  for (int64_t length : lengths)
    for (int i = 0; i < count; ++i) {
      const LengthRange &range = ranges.ranges()[ranges.byLength()[i]];
      if (range.first <= length && length <= range.last)
        own[i].push_back(length);
    }
  double best = std::numeric_limits<double>::infinity();
  std::vector<int> target(count);
  std::function<void(int)> from = [&](int i) {
    if (i < count) {
      for (target[i] = i; target[i] < count; ++target[i])
        from(i + 1);
      return;
    }
    std::vector<PhaseLengths> loads(count);
    for (int range = 0; range < count; ++range) {
      // Nothing jumps over a graph that is used by ranges between.
      for (int other = range + 1; other < count; ++other)
        if (!own[range].empty() && !own[other].empty() &&
            (target[other] < target[range] ||
             (other <= target[range] && target[other] != target[range])))
          return;
      for (int64_t length : own[range])
        loads[target[range]].add(length);
    }
    double seconds = 0;
    std::vector<int> graphs;
    for (int graph = 0; graph < count; ++graph)
      for (int range = 0; range < count; ++range)
        if (ranges.byLength()[range] == graph &&
            loads[range].load.segments > 0) {
          seconds += estimates.phaseSeconds(graph, loads[range]);
          graphs.push_back(graph);
        }
    best = std::min(best, seconds + estimates.switchSeconds(graphs));
  };
  from(0);
  return best;
}

TEST(AssignStrategies, IsTheBestOfAllWays) {
  int merged = 0, kept = 0;
  for (uint64_t seed = 1; seed <= 500; ++seed) {
    Draw draw(seed);
    const int count = 1 + draw.below(5);
    // Ranges of ten tokens, in any order.
    std::vector<LengthRange> list;
    for (int i = 0; i < count; ++i)
      list.push_back({"r" + std::to_string(i), i, 10 * i,
                      i + 1 < count ? 10 * i + 9 : LengthRange::noEnd});
    for (int i = count - 1; i > 0; --i)
      std::swap(list[i], list[draw.below(i + 1)]);
    const LengthRanges ranges = *LengthRanges::create(list);
    SimpleEstimates estimates(count, 0, draw.below(count));
    for (int i = 0; i < count; ++i) {
      estimates.start[i] = draw.below(20);
      estimates.perToken[i] = 1 + draw.below(4);
      for (int j = 0; j < count; ++j)
        if (i != j) {
          estimates.there[i][j] = draw.below(60);
          estimates.back[i][j] = draw.below(60);
        }
    }
    std::vector<int64_t> lengths;
    for (int i = 1 + draw.below(6); i > 0; --i)
      lengths.push_back(1 + draw.below(10 * count));
    auto assigned = assignSamples(lengths, ranges, estimates);
    ASSERT_TRUE(assigned.isOk());
    EXPECT_DOUBLE_EQ(assigned->seconds(), bestOfAll(lengths, ranges, estimates))
        << "seed " << seed;
    // What it says is what its phases take.
    double seconds = 0;
    std::vector<int> graphs, seen(lengths.size());
    for (int graph = 0; graph < count; ++graph) {
      PhaseLengths phase;
      for (int sample : assigned->samples[graph]) {
        phase.add(lengths[sample]);
        ++seen[sample];
        EXPECT_LE(lengths[sample], ranges.ranges()[graph].last);
      }
      if (phase.load.segments == 0)
        continue;
      graphs.push_back(graph);
      seconds += estimates.phaseSeconds(graph, phase);
    }
    EXPECT_THAT(seen, testing::Each(1));
    EXPECT_DOUBLE_EQ(assigned->seconds(),
                     seconds + estimates.switchSeconds(graphs));
    (assigned->merged > 0 ? merged : kept) += 1;
  }
  EXPECT_GT(merged, 50);
  EXPECT_GT(kept, 50);
}

// Each part of the ranges' order is estimated once, however many ways there are.
TEST(AssignStrategies, EstimatesEachPhaseOnce) {
  std::vector<LengthRange> list;
  for (int i = 0; i < 8; ++i)
    list.push_back({"r" + std::to_string(i), i, 10 * i,
                    i < 7 ? 10 * i + 9 : LengthRange::noEnd});
  SimpleEstimates estimates(8, 3);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 80; ++i)
    lengths.push_back(i);
  ASSERT_TRUE(
      assignSamples(lengths, *LengthRanges::create(list), estimates).isOk());
  EXPECT_LE(estimates.asked, 8 * 9 / 2);
}

} // namespace
