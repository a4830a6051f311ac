//===- StrategyCandidatesTest.cpp - Strategies of small clusters ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/StrategyCandidates.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/graph/RankMemory.h"
#include "runtime/planner/switch/SwitchBounds.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/Draw.h"
#include "test/runtime/planner/TwoNodes.h"

#include <gmock/gmock.h>

#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace dyna;
using testing::HasSubstr;

namespace {

const Model &tinyModel() {
  static const Model model = [] {
    TinyOptions options;
    options.hidden = 12;
    options.blocks = 4;
    options.degrees = {{2, false}, {2, true}, {4, false}};
    return *Model::create(tinyManifest(options));
  }();
  return model;
}

std::vector<int64_t> drawLengths(uint64_t seed) {
  Draw draw(seed);
  std::vector<int64_t> lengths;
  for (int i = 0; i < 200; ++i)
    lengths.push_back(
        static_cast<int64_t>(std::exp(2 + 5.0 * draw.below(1000) / 1000)));
  return lengths;
}

StrategySpace spaceOf(int64_t memory, int mostKept) {
  StrategySpace space;
  space.ranks = 4;
  space.memoryBytes = memory;
  space.tokensPerStep = 4096;
  space.mostKept = mostKept;
  return space;
}

TEST(StrategyCandidates, AreAllThatWereCompiled) {
  const CostModel costs = twoNodes(tinyModel());
  const LengthDistribution lengths(drawLengths(1), 40);
  auto all = StrategyCandidates::create(costs, spaceOf(0, 0), lengths);
  ASSERT_TRUE(all.isOk()) << all.status().message();
  std::set<std::string> names;
  for (int c = 0; c < all->candidates(); ++c) {
    EXPECT_EQ(all->strategy(c).ranks(), 4);
    names.insert(describeStrategy(all->strategy(c)));
  }
  EXPECT_EQ(static_cast<int>(names.size()), all->candidates());
  // In three modes each. One degree above 1 has one order: dp=4 with ZeRO or without,
  // pp=4, tp=4; two have two: dp=2,pp=2 and, with sp or without, dp=2,tp=2, with ZeRO
  // or without, and tp=2,pp=2.
  EXPECT_EQ(all->candidates(), (4 + (2 + 2 * (2 + 1)) * 2) * 3);
  EXPECT_EQ(all->considered(), all->candidates());
  EXPECT_TRUE(names.count("dp=2,tp=2,pp=1,zero=1,sp=1,recompute=full,layers=6,"
                          "order=pp+tp+dp"));
}

// What is kept of all strategies finds what all of them find, or nearly.
TEST(StrategyCandidates, TheKeptOnesAreGoodEnough) {
  const CostModel costs = twoNodes(tinyModel());
  int several = 0;
  for (uint64_t seed = 2; seed <= 5; ++seed) {
    const LengthDistribution lengths(drawLengths(seed), 60);
    const int64_t memory = 700000 + 200000 * static_cast<int64_t>(seed);
    StrategySearch search;
    search.ends = {32, 128, 512};
    search.mostRanges = 3;
    auto all = StrategyCandidates::create(costs, spaceOf(memory, 0), lengths);
    auto kept = StrategyCandidates::create(costs, spaceOf(memory, 8), lengths);
    ASSERT_TRUE(all.isOk() && kept.isOk());
    // 8, some of which are numbered in two ways.
    EXPECT_GE(kept->candidates(), 8);
    EXPECT_LE(kept->candidates(), 16);
    auto best = searchStrategies(*all, lengths, search);
    auto found = searchStrategies(*kept, lengths, search);
    ASSERT_TRUE(best.isOk()) << best.status().message();
    ASSERT_TRUE(found.isOk()) << found.status().message();
    several += best->best.ranges.size() > 1;
    EXPECT_GE(found->best.seconds(), best->best.seconds() * (1 - 1e-9));
    EXPECT_LE(found->best.seconds(), best->best.seconds() * 1.02)
        << "seed " << seed;
  }
  EXPECT_GT(several, 0);
}

/// Of the fullest rank.
int64_t leastHome(const StrategyCandidates &all) {
  int64_t least = std::numeric_limits<int64_t>::max();
  for (int c = 0; c < all.candidates(); ++c) {
    int64_t most = 0;
    for (int rank = 0; rank < all.graph(c).ranks(); ++rank)
      most =
          std::max(most, persistentLayout(all.graph(c).rankView(rank)).bytes);
    least = std::min(least, most);
  }
  return least;
}

// Guests have most room beside the smallest home: it is kept, however slow.
TEST(StrategyCandidates, TheSmallestHomeIsKept) {
  const CostModel costs = twoNodes(tinyModel());
  for (uint64_t seed = 2; seed <= 4; ++seed) {
    const LengthDistribution lengths(drawLengths(seed), 60);
    for (int64_t memory : {0, 1200000, 4000000}) {
      auto all = StrategyCandidates::create(costs, spaceOf(memory, 0), lengths);
      ASSERT_TRUE(all.isOk()) << all.status().message();
      for (int most : {2, 4, 8}) {
        auto kept =
            StrategyCandidates::create(costs, spaceOf(memory, most), lengths);
        ASSERT_TRUE(kept.isOk()) << kept.status().message();
        EXPECT_EQ(leastHome(*kept), leastHome(*all))
            << most << " are kept in " << memory << ", seed " << seed;
      }
    }
  }
}

/// Tokens of the longest sample that a run of one strategy takes: what it does with
/// --rank-memory, by the functions that it calls.
int64_t longestOfRun(const CostModel &costs, const ExecutableGraph &graph,
                     plan::Recompute mode, int64_t memory, int64_t longest,
                     Persistent has = Persistent::Training) {
  PlanRequest request;
  request.strategy = graph.strategy();
  request.strategy.recompute = mode;
  request.tokensPerBatch = 4096;
  PlanOptions options = choosePolicy(costs, request)->options;
  const Planner planner(graph, costs);
  options.maxTokensPerMicroBatch =
      *largestMicroBatchWithin(planner, options, has, memory);
  if (options.maxTokensPerMicroBatch == 0)
    return 0;
  options.longestSample = longest;
  options.longestSample = *longestSampleWithin(planner, options, has, memory);
  EXPECT_TRUE(sizeDynamicRegions(planner, options, has, memory).isOk());
  return std::min(longest, options.mostTokens());
}

// What a search takes a run takes, and the other way round: by the token.
TEST(StrategyCandidates, HoldWhatRunsHold) {
  int none = 0, some = 0, all = 0;
  for (int64_t hidden : {12, 8})
    for (int64_t memory : {14000, 60000, 300000, 900000}) {
      TinyOptions tiny;
      tiny.hidden = hidden;
      tiny.blocks = hidden == 12 ? 4 : 7;
      tiny.degrees = {{2, false}, {2, true}, {4, false}};
      const Model model = *Model::create(tinyManifest(tiny));
      const CostModel costs = twoNodes(model);
      const LengthDistribution lengths(drawLengths(3), 60);
      StrategySpace space = spaceOf(memory, 0);
      space.orders = {{"dp", "pp", "tp"}, {"tp", "pp", "dp"}};
      auto made = StrategyCandidates::create(costs, space, lengths);
      if (!made.isOk())
        continue;
      for (int c = 0; c < made->candidates(); ++c) {
        const int64_t taken =
            longestOfRun(costs, made->graph(c), *made->strategy(c).recompute,
                         memory, lengths.longest());
        ASSERT_EQ(made->mostTokens(c, {c}), taken)
            << describeStrategy(made->strategy(c)) << " in " << memory;
        EXPECT_EQ(made->holds(c, {c}, lengths.longest()),
                  taken == lengths.longest());
        if (taken > 0)
          EXPECT_TRUE(made->holds(c, {c}, taken));
        ++(taken == 0 ? none : taken < lengths.longest() ? some : all);
        // Beside a home, which counts as on its fullest rank, less what the
        // graph reads there.
        const int home = (c + 7) % made->candidates();
        int64_t beside = 0;
        const auto rows = rowsAtHome(made->graph(home), made->graph(c));
        for (int rank = 0; rank < 4; ++rank) {
          auto bytes = [&](const std::vector<int64_t> &elsewhere) {
            return persistentLayout(made->graph(c).rankView(rank),
                                    Persistent::Gradients, 0, elsewhere)
                .bytes;
          };
          beside = std::max(
              beside, persistentLayout(made->graph(home).rankView(rank)).bytes +
                          bytes(rows[rank]) - bytes({}));
        }
        EXPECT_EQ(made->mostTokens(c, {home, c}),
                  longestOfRun(costs, made->graph(c),
                               *made->strategy(c).recompute, memory - beside,
                               lengths.longest(), Persistent::Gradients));
      }
    }
  EXPECT_GT(none, 10);
  EXPECT_GT(some, 10);
  EXPECT_GT(all, 10);
}

TEST(StrategyCandidates, ALackOfRoomForParametersIsSaid) {
  const CostModel costs = twoNodes(tinyModel());
  const LengthDistribution lengths(drawLengths(3), 60);
  auto none = StrategyCandidates::create(costs, spaceOf(100, 0), lengths);
  ASSERT_FALSE(none.isOk());
  EXPECT_THAT(none.status().message(),
              HasSubstr("tokens in 100 B of a rank: '"));
  EXPECT_THAT(none.status().message(),
              testing::Not(HasSubstr("it has room for")));
}

//===----------------------------------------------------------------------===//
// Switches
//===----------------------------------------------------------------------===//

/// Element by element.
double secondsOf(SwitchKind kind, const ExecutableGraph &from,
                 const ExecutableGraph &to, const Cluster &cluster) {
  const bool once = kind == SwitchKind::Gradients;
  std::vector<double> ranks(4, 0), nodes(2, 0);
  const Model &model = from.model();
  auto contains = [](const Box &box, int64_t row, int64_t column) {
    return box.begin[0] <= row && row < box.begin[0] + box.size[0] &&
           box.begin[1] <= column && column < box.begin[1] + box.size[1];
  };
  for (int p = 0; p < model.parameters(); ++p) {
    auto has = kind == SwitchKind::Next ? from.boxes(p) : from.currentBoxes(p);
    auto needs = to.boxes(p);
    const auto bytes = static_cast<double>(
        elementBytes(once ? model.gradientType() : model.computeType(p)));
    for (int64_t row = 0; row < model.rows(p); ++row)
      for (int64_t column = 0; column < model.rowElements(p); ++column) {
        std::set<int> holders, needers, near;
        for (const RankBox &one : has)
          if (contains(one.box, row, column))
            holders.insert(one.rank);
        for (const RankBox &one : needs)
          if (contains(one.box, row, column))
            needers.insert(one.rank);
        auto onNode = [&](int node) {
          return holders.count(2 * node) + holders.count(2 * node + 1) > 0;
        };
        std::set<int> lacking, stays;
        for (int rank : needers)
          (holders.count(rank) ? stays : lacking).insert(rank);
        if (!once) {
          for (int rank : lacking)
            ranks[rank] += bytes;
          for (int node : {0, 1})
            if (!onNode(node) &&
                lacking.count(2 * node) + lacking.count(2 * node + 1))
              nodes[node] += bytes;
          continue;
        }
        if (!stays.empty())
          continue;
        for (int rank : needers)
          if (onNode(rank / 2))
            near.insert(rank);
        const auto &takers = near.empty() ? needers : near;
        for (int rank : takers) {
          ranks[rank] += bytes / static_cast<double>(takers.size());
          if (near.empty())
            nodes[rank / 2] += bytes / static_cast<double>(takers.size());
        }
      }
  }
  const double inside = cluster.description().inside().bytes_per_second();
  const double between = cluster.description().between().bytes_per_second();
  return std::max(*std::max_element(nodes.begin(), nodes.end()) / (2 * between),
                  *std::max_element(ranks.begin(), ranks.end()) /
                      (inside + between));
}

TEST(SwitchEstimate, CountsWhatEachElementNeeds) {
  const CostModel costs = twoNodes(tinyModel());
  const SwitchEstimator estimator(tinyModel(), costs.cluster());
  std::vector<ExecutableGraph> graphs;
  for (const char *text : {"dp=4", "dp=4,zero=1", "dp=2,tp=2,zero=1", "tp=4",
                           "tp=2,pp=2,layers=3+3", "pp=4,layers=1+2+2+1",
                           "dp=2,pp=2,layers=2+4,zero=1,order=pp+dp+tp",
                           "dp=2,tp=2,sp=1,order=tp+dp+pp"})
    graphs.push_back(
        *ExecutableGraph::create(tinyModel(), *parseStrategy(text)));
  int moving = 0;
  for (const ExecutableGraph &from : graphs)
    for (const ExecutableGraph &to : graphs)
      for (SwitchKind kind :
           {SwitchKind::First, SwitchKind::Next, SwitchKind::Gradients}) {
        const double expected = secondsOf(kind, from, to, costs.cluster());
        EXPECT_NEAR(
            estimator.seconds(kind, SwitchLayout(from), SwitchLayout(to)),
            expected, 1e-9 * expected)
            << from.name() << " -> " << to.name() << ", kind "
            << static_cast<int>(kind);
        moving += expected > 0;
      }
  EXPECT_GT(moving, 100);
}

// What crosses cuts is a bound: no plan of the same switch is faster, and most are
// not much slower.
TEST(SwitchEstimate, IsNotAboveWhatPlansTake) {
  const CostModel costs = twoNodes(tinyModel());
  const SwitchEstimator estimator(tinyModel(), costs.cluster());
  const SwitchNetwork network = networkOf(costs.cluster(), 4);
  std::vector<ExecutableGraph> graphs;
  for (const char *text : {"dp=4,zero=1", "dp=2,tp=2,zero=1", "tp=4",
                           "tp=2,pp=2,layers=3+3", "pp=4,layers=1+2+2+1"})
    graphs.push_back(
        *ExecutableGraph::create(tinyModel(), *parseStrategy(text)));
  double estimates = 0, bounds = 0;
  for (const ExecutableGraph &from : graphs)
    for (const ExecutableGraph &to : graphs) {
      if (&from == &to)
        continue;
      auto bound = boundsOf(valueTensors(from, nullptr, to), network);
      ASSERT_TRUE(bound.isOk()) << bound.status().message();
      const double seconds = estimator.seconds(
          SwitchKind::First, SwitchLayout(from), SwitchLayout(to));
      EXPECT_LE(seconds, bound->largest() * (1 + 1e-9))
          << from.name() << " -> " << to.name();
      estimates += seconds;
      bounds += bound->largest();
    }
  EXPECT_GT(estimates, 0.8 * bounds);
}

} // namespace
