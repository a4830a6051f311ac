//===- StrategyCandidatesTest.cpp - Strategies of small clusters ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/StrategyCandidates.h"

#include "runtime/base/Text.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/plan/SwitchTable.h"
#include "runtime/planner/RankMemory.h"
#include "runtime/planner/SwitchBounds.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>

#include <cmath>
#include <map>
#include <set>

using namespace dyna;
using testing::HasSubstr;

namespace {

/// Two nodes of two devices. Compute takes long enough that degrees matter.
CostModel costsOf(const Model &model) {
  return *CostModel::create(
      model,
      *CostTable::parse(
          "device { name: \"d\" f64_flops: 1e8 f32_flops: 1e8 bf16_flops: "
          "1e8 bytes_per_second: 1e9 launch_seconds: 1e-5 }\n"
          "cluster { nodes: 2 devices_per_node: 2 inside { "
          "latency_seconds: 1e-6 bytes_per_second: 1e10 } between { "
          "latency_seconds: 5e-6 bytes_per_second: 1e9 } }\n",
          "costs"));
}

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
  const CostModel costs = costsOf(tinyModel());
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
  const CostModel costs = costsOf(tinyModel());
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

// Persistent bytes are those of the layout, and a phase that is said to fit leaves
// room for the plans that the planner makes.
TEST(StrategyCandidates, MemoryIsThatOfRanks) {
  const CostModel costs = costsOf(tinyModel());
  const LengthDistribution lengths(drawLengths(3), 60);
  const int64_t memory = 300000;
  auto all = StrategyCandidates::create(costs, spaceOf(memory, 0), lengths);
  ASSERT_TRUE(all.isOk()) << all.status().message();
  int limited = 0;
  for (int c = 0; c < all->candidates(); ++c) {
    const int64_t tokens = all->mostTokens(c, {c});
    if (tokens == 0)
      continue;
    limited += tokens < lengths.longest();
    EXPECT_GE(tokens, all->mostTokens(c, {(c + 7) % all->candidates(), c}));
    // Sequential plans of such a sample fit.
    PlanOptions options;
    options.recompute = {*all->strategy(c).recompute};
    options.maxTokensPerMicroBatch = std::min<int64_t>(tokens, 64);
    options.longestSample = tokens;
    const Planner planner(all->graph(c), costs);
    auto least = planner.leastDynamicBytes(options, true);
    ASSERT_TRUE(least.isOk()) << least.status().message();
    for (int rank = 0; rank < 4; ++rank)
      EXPECT_LE(persistentLayout(all->graph(c).rankView(rank)).bytes +
                    (*least)[rank],
                memory)
          << describeStrategy(all->strategy(c)) << " with " << tokens;
  }
  EXPECT_GT(limited, 10);
  auto none = StrategyCandidates::create(costs, spaceOf(100, 0), lengths);
  ASSERT_FALSE(none.isOk());
  EXPECT_THAT(none.status().message(),
              HasSubstr("none has room for its parameters in 100 B"));
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
    auto has = kind == SwitchKind::First ? from.currentBoxes(p) : from.boxes(p);
    auto needs = once ? to.currentBoxes(p) : to.boxes(p);
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
  const CostModel costs = costsOf(tinyModel());
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
  const CostModel costs = costsOf(tinyModel());
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
