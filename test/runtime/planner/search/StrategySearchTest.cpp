//===- StrategySearchTest.cpp - What is found, against all answers --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/StrategySearch.h"

#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

struct TableCosts : StepCosts {
  struct Candidate {
    double start = 0, perToken = 1, update = 0;
    int64_t longest = INT64_C(1) << 40;
    int family = 0;
  };
  std::vector<Candidate> list;
  std::map<SwitchKind, std::vector<std::vector<double>>> switches;

  TableCosts(int count, double switching) : list(count) {
    for (int i = 0; i < count; ++i)
      list[i].family = i;
    for (SwitchKind kind :
         {SwitchKind::First, SwitchKind::Next, SwitchKind::Gradients}) {
      switches[kind].assign(count, std::vector<double>(count, switching));
      for (int i = 0; i < count; ++i)
        switches[kind][i][i] = 0;
    }
  }
  int candidates() const override { return static_cast<int>(list.size()); }
  double phaseSeconds(int c, const std::vector<int> &graphs,
                      const PhaseLengths &lengths,
                      int64_t longest) const override {
    EXPECT_GT(lengths.load.segments, 0);
    EXPECT_LE(lengths.longest, longest);
    EXPECT_EQ(std::count(graphs.begin(), graphs.end(), c), 1);
    // Every other graph takes memory.
    return longest > list[c].longest / static_cast<int64_t>(graphs.size())
               ? never
               : list[c].start + list[c].perToken *
                                     static_cast<double>(lengths.load.queries);
  }
  double updateSeconds(int home) const override { return list[home].update; }
  double switchSeconds(SwitchKind kind, int from, int to) const override {
    return switches.at(kind)[from][to];
  }
  int family(int c) const override { return list[c].family; }
};

TEST(LengthDistribution, PartsAreWhatAStepHas) {
  std::vector<int64_t> lengths(900, 10);
  lengths.resize(1000, 100);
  const LengthDistribution all(lengths, 50);
  EXPECT_EQ(all.longest(), 100);
  const auto few = all.between(11, 200);
  EXPECT_NEAR(few.probability, 1 - std::exp(-5.0), 1e-12);
  EXPECT_EQ(few.lengths.load.segments, 5);
  EXPECT_NEAR(static_cast<double>(few.lengths.load.queries), 503, 1);
  EXPECT_NEAR(static_cast<double>(few.lengths.load.pairs), 50339, 10);
  EXPECT_EQ(few.lengths.longest, 100);
  EXPECT_EQ(all.between(0, 10).probability, 1);
  EXPECT_EQ(all.between(11, 99).probability, 0);
  // The 45 samples of a step that has all of them, and no longer ones.
  EXPECT_EQ(all.between(0, 99).lengths.load.queries, 450);
  // Seldom there, but then there is one of them.
  const auto seldom = LengthDistribution(lengths, 0.1).between(11, 100);
  EXPECT_NEAR(seldom.probability, 0.01, 1e-3);
  EXPECT_EQ(seldom.lengths.load.segments, 1);
  EXPECT_NEAR(static_cast<double>(seldom.lengths.load.queries), 100, 1);
  EXPECT_EQ(seldom.longest, 100);
  // One is expected, of steps that have any of them 1 / (1 - 1/e).
  const auto one = LengthDistribution(lengths, 10).between(11, 100);
  EXPECT_NEAR(one.probability, 1 - std::exp(-1.0), 1e-12);
  EXPECT_EQ(one.lengths.load.segments, 2);
  EXPECT_EQ(one.lengths.load.queries, 158);
}

TEST(LengthDistribution, LongestOfFewIsNotThatOfAll) {
  std::vector<int64_t> lengths(1000);
  std::iota(lengths.begin(), lengths.end(), 1);
  const auto part = LengthDistribution(lengths, 9).between(0, 1000);
  EXPECT_EQ(part.longest, 1000);
  EXPECT_EQ(part.lengths.longest, 901);
}

// A short sample costs the first one little, a long one only fits the second.
TEST(StrategySearch, LongSamplesHaveTheirOwn) {
  TableCosts costs(2, 5);
  costs.list[1] = {0, 2, 0, 1000, 1};
  costs.list[0].longest = 128; // just what a range up to 64 allows
  std::vector<int64_t> lengths(90, 10);
  lengths.resize(100, 400);
  auto found = searchStrategies(costs, LengthDistribution(lengths, 1000),
                                {usualEnds(400), 4});
  ASSERT_TRUE(found.isOk()) << found.status().message();
  ASSERT_EQ(found->best.ranges.size(), 2u);
  EXPECT_EQ(found->best.home, 1);
  EXPECT_EQ(found->bestSingle.ranges.size(), 1u);
  EXPECT_EQ(found->bestSingle.ranges[0].candidate, 1);
  EXPECT_EQ(found->singles[0], never);
  EXPECT_DOUBLE_EQ(found->best.phases, 9000 + 2 * 40000);
  EXPECT_DOUBLE_EQ(found->best.switches, 5 + 5);
  EXPECT_DOUBLE_EQ(found->bestSingle.seconds(), 98000);
  // With less it has no range, though no sample is that long.
  costs.list[0].longest = 127;
  auto without = searchStrategies(costs, LengthDistribution(lengths, 1000),
                                  {usualEnds(400), 4});
  ASSERT_TRUE(without.isOk()) << without.status().message();
  EXPECT_EQ(without->best.ranges.size(), 1u);
  costs.list[0].longest = 128;
  // Without the masters it still has the long samples.
  costs.list[1].update = 1000;
  auto asGuest = searchStrategies(costs, LengthDistribution(lengths, 1000),
                                  {usualEnds(400), 4});
  ASSERT_TRUE(asGuest.isOk()) << asGuest.status().message();
  EXPECT_EQ(asGuest->best.ranges.size(), 2u);
  EXPECT_EQ(asGuest->best.home, 0);
  costs.list[1].update = 0;
  // Where switches cost more than that, one wins.
  TableCosts dear(2, 50000);
  dear.list = costs.list;
  found = searchStrategies(dear, LengthDistribution(lengths, 1000),
                           {usualEnds(400), 4});
  EXPECT_EQ(found->best.ranges.size(), 1u);
  EXPECT_EQ(found->best.home, 1);
}

TEST(StrategySearch, SaysThatNothingHasRoom) {
  TableCosts costs(2, 5);
  for (auto &candidate : costs.list)
    candidate.longest = 100;
  auto found = searchStrategies(costs, LengthDistribution({10, 400}, 10),
                                {usualEnds(400), 4});
  ASSERT_FALSE(found.isOk());
  EXPECT_EQ(found.status().code(), StatusCode::ResourceExhausted);
}

TEST(StrategySearch, UsualEndsAreBelowTheLongest) {
  EXPECT_THAT(usualEnds(256), ElementsAre(64, 96, 128, 192));
  EXPECT_THAT(usualEnds(64), ElementsAre());
}

/// Values come from home or from the phase before, whichever takes less.
TEST(StrategySearch, OrdersAreChosenByWhatThePhaseBeforeHas) {
  TableCosts costs(3, 10);
  auto &next = costs.switches[SwitchKind::Next];
  next[2][1] = 1;
  std::vector<int> order;
  EXPECT_DOUBLE_EQ(bestOrder(costs, 0, {0, 1, 2}, {1, 1, 1}, order),
                   10 + 1 + 2 * 10);
  EXPECT_THAT(order, ElementsAre(2, 1, 0));
  next[1][2] = 0.5;
  EXPECT_DOUBLE_EQ(bestOrder(costs, 0, {0, 1, 2}, {1, 1, 1}, order),
                   10 + 0.5 + 2 * 10);
  EXPECT_THAT(order, ElementsAre(1, 2, 0));
  // In half of the steps there is no phase before it.
  EXPECT_DOUBLE_EQ(bestOrder(costs, 0, {0, 1, 2}, {1, 0.5, 1}, order),
                   0.5 * (10 + 10) + 0.5 * (10 + 0.5 + 2 * 10));
  // It may lack what home has.
  next[1][2] = next[2][1] = 50;
  EXPECT_DOUBLE_EQ(bestOrder(costs, 0, {0, 1, 2}, {1, 1, 1}, order), 4 * 10);
}

/// Every answer there is: each home, each way to cut the ends, each candidate for
/// each range, each order.
struct AllAnswers {
  const TableCosts &costs;
  const LengthDistribution &lengths;
  const StrategySearch &search;
  double best = never;
  int64_t answers = 0;

  void run() {
    const int ends = static_cast<int>(search.ends.size());
    for (int cuts = 0; cuts < 1 << ends; ++cuts) {
      std::vector<std::pair<int64_t, int64_t>> ranges = {
          {0, std::numeric_limits<int64_t>::max()}};
      for (int i = 0; i < ends; ++i)
        if (cuts >> i & 1) {
          ranges.back().second = search.ends[i];
          ranges.push_back(
              {search.ends[i] + 1, std::numeric_limits<int64_t>::max()});
        }
      if (static_cast<int>(ranges.size()) > search.mostRanges)
        continue;
      std::vector<int> chosen(ranges.size());
      assign(ranges, chosen, 0);
    }
  }

  void assign(const std::vector<std::pair<int64_t, int64_t>> &ranges,
              std::vector<int> &chosen, size_t range) {
    if (range < ranges.size()) {
      for (int c = 0; c < costs.candidates(); ++c) {
        bool isUsed = false;
        for (size_t i = 0; i < range; ++i)
          isUsed |= costs.family(chosen[i]) == costs.family(c);
        chosen[range] = c;
        if (!isUsed)
          assign(ranges, chosen, range + 1);
      }
      return;
    }
    std::vector<int> order(ranges.size());
    std::iota(order.begin(), order.end(), 0);
    do // home is the last one
      best = std::min(best,
                      secondsOf(ranges, chosen, order, chosen[order.back()]));
    while (std::next_permutation(order.begin(), order.end()));
  }

  double secondsOf(const std::vector<std::pair<int64_t, int64_t>> &ranges,
                   const std::vector<int> &chosen,
                   const std::vector<int> &order, int home) {
    ++answers;
    std::vector<int> graphs = {home};
    for (int c : chosen)
      if (c != home)
        graphs.push_back(c);
    double seconds = costs.updateSeconds(home);
    std::vector<double> probability;
    for (size_t i = 0; i < ranges.size(); ++i) {
      auto part = lengths.between(ranges[i].first, ranges[i].second);
      probability.push_back(part.probability);
      if (part.probability > 0)
        seconds +=
            part.probability *
            costs.phaseSeconds(chosen[i], graphs, part.lengths, part.longest);
    }
    for (int set = 1; set < 1 << ranges.size(); ++set) {
      double share = 1;
      std::vector<int> there;
      for (int place : order) {
        share *= set >> place & 1 ? probability[place] : 1 - probability[place];
        if (set >> place & 1)
          there.push_back(chosen[place]);
      }
      if (share == 0)
        continue;
      double cycle = 0;
      for (size_t i = 0; i < there.size(); ++i) {
        if (there[i] == home) {
          cycle += costs.switchSeconds(SwitchKind::First, home, home);
          continue;
        }
        cycle += costs.switchSeconds(SwitchKind::Gradients, there[i], home);
        const double first =
            costs.switchSeconds(SwitchKind::First, home, there[i]);
        if (i == 0)
          cycle += first;
        else
          cycle += std::min(first, costs.switchSeconds(SwitchKind::Next,
                                                       there[i - 1], there[i]));
      }
      seconds += share * cycle;
    }
    return seconds;
  }
};

TEST(StrategySearch, IsTheBestOfAllAnswers) {
  int several = 0, single = 0, refused = 0;
  int64_t complete = 0, answers = 0;
  for (uint64_t seed = 1; seed <= 160; ++seed) {
    Draw draw(seed);
    const int count = 2 + draw.below(3);
    TableCosts costs(count, 0);
    const int dear = 1 + draw.below(60);
    for (int c = 0; c < count; ++c) {
      costs.list[c] = {static_cast<double>(draw.below(100)),
                       0.1 + draw.below(100) / 20.0,
                       static_cast<double>(draw.below(100)),
                       INT64_C(50) << draw.below(6), c};
      for (auto &[kind, table] : costs.switches)
        for (int other = 0; other < count; ++other)
          if (c != other || kind == SwitchKind::First)
            table[c][other] = draw.below(dear);
    }
    if (draw.below(4) == 0)
      costs.list[1].family = 0;
    std::vector<int64_t> drawn;
    for (int i = 0; i < 40; ++i)
      drawn.push_back(static_cast<int64_t>(
          std::exp(1 + static_cast<double>(draw.below(500)) / 100)));
    const LengthDistribution lengths(drawn, 1 + draw.below(60));
    StrategySearch search;
    search.ends = {16, 48, 100};
    search.mostRanges = 1 + draw.below(4);
    while (!search.ends.empty() && search.ends.back() >= lengths.longest())
      search.ends.pop_back();
    AllAnswers all{costs, lengths, search};
    all.run();
    auto found = searchStrategies(costs, lengths, search);
    if (!found.isOk()) {
      EXPECT_EQ(all.best, never) << "seed " << seed;
      ++refused;
      continue;
    }
    EXPECT_NEAR(found->best.seconds(), all.best, 1e-9 * all.best)
        << "seed " << seed;
    (found->best.ranges.size() > 1 ? several : single) += 1;
    complete += found->complete;
    answers += all.answers;
    // Its ranges are one behind the other, whatever their order in the step.
    int64_t covered = 0;
    std::map<int64_t, int64_t> ends;
    bool hasHome = false;
    for (const FoundRange &range : found->best.ranges) {
      ends[range.first] = range.last;
      hasHome |= range.candidate == found->best.home;
    }
    EXPECT_TRUE(hasHome);
    EXPECT_EQ(found->best.ranges.back().candidate, found->best.home);
    for (auto [first, last] : ends) {
      EXPECT_EQ(first, covered);
      covered = last + 1;
      if (last == std::numeric_limits<int64_t>::max())
        break;
    }
  }
  EXPECT_GT(several, 20);
  EXPECT_GT(single, 20);
  EXPECT_GT(refused, 0);
  // Most answers are not even looked at.
  EXPECT_LT(complete * 10, answers);
}

} // namespace
