//===- ChooseStrategiesTest.cpp - Strategies by lengths, with their names -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/ChooseStrategies.h"

#include "runtime/base/text/Text.h"

#include "runtime/planner/request/LengthRanges.h"
#include "runtime/planner/search/SizedSteps.h"
#include "runtime/planner/step/StepRegions.h"
#include "test/runtime/plan/TinyPlans.h"
#include "test/runtime/planner/TwoNodes.h"

#include <gmock/gmock.h>

#include <algorithm>
#include <cmath>
#include <set>

using namespace dyna;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

TEST(ChooseStrategies, DegreesDivideWhatIsSplit) {
  EXPECT_EQ(degreesToSearch(1, {}), "");
  EXPECT_EQ(degreesToSearch(4, {}), "tp2: tp=2; tp2-sp: tp=2,sp=1; tp4: tp=4; "
                                    "tp4-sp: tp=4,sp=1");
  const std::string two = "tp2: tp=2; tp2-sp: tp=2,sp=1";
  EXPECT_EQ(degreesToSearch(8, {6, 0, 0}), two);
  EXPECT_EQ(degreesToSearch(8, {8, 8, 10}), two);
  EXPECT_EQ(degreesToSearch(6, {8, 8, 8}), two);
  // Two key/value heads lie on four ranks; six heads neither on four nor they on it.
  EXPECT_THAT(degreesToSearch(8, {8, 2, 8}), HasSubstr("tp8-sp"));
  EXPECT_EQ(degreesToSearch(8, {12, 6, 8}), two);
  EXPECT_EQ(degreesToSearch(8, {7, 0, 0}), "");
  EXPECT_EQ(degreesToSearch(6, {12, 6, 12}),
            two + "; tp3: tp=3; tp3-sp: tp=3,sp=1; tp6: tp=6; tp6-sp: "
                  "tp=6,sp=1");
  EXPECT_EQ(degreesToSearch(5, {5, 5, 5}), "");
}

TEST(ChooseStrategies, RanksAreWholeNodesOfTheCluster) {
  const CostTable table = *CostTable::described("a800-80g:4x8");
  const Cluster &four = table.cluster();
  EXPECT_EQ(*ranksToSearch(four, 0), 32);
  EXPECT_EQ(*ranksToSearch(four, 3), 3);
  EXPECT_EQ(*ranksToSearch(four, 16), 16);
  auto refusal = [](const Cluster &cluster, int64_t asked) {
    return ranksToSearch(cluster, asked).status().message();
  };
  EXPECT_EQ(refusal(four, 12),
            "--ranks is 12, which are no whole nodes of 8 devices: give a "
            "multiple of 8, or less");
  EXPECT_EQ(refusal(four, 40), "--ranks is 40, but the cluster has 32 devices");
  EXPECT_EQ(refusal(four, -1), "--ranks expects 1 to 4096, but got -1");
  EXPECT_THAT(refusal(Cluster(), 0), HasSubstr("needs to know the devices"));
  EXPECT_EQ(*ranksToSearch(Cluster(), 6), 6);
}

TEST(ChooseStrategies, LengthsAreCutAtPositions) {
  std::vector<int64_t> lengths = {5, 40, 41, 100};
  EXPECT_EQ(cutLengths(lengths, 0), 0);
  EXPECT_EQ(cutLengths(lengths, 40), 2);
  EXPECT_THAT(lengths, ElementsAre(5, 40, 40, 40));
}

/// Texts are those that a run takes: they parse to what was found.
TEST(ChooseStrategies, TextsSayWhatWasFound) {
  TinyOptions options;
  options.hidden = 12;
  options.blocks = 4;
  options.degrees = {{2, false}, {4, false}};
  const Model model = *Model::create(tinyManifest(options));
  const CostModel costs = twoNodes(model);
  std::vector<int64_t> lengths(400, 10);
  lengths.resize(410, 900);
  StrategySpace space;
  space.ranks = 4;
  space.tokensPerStep = 4096;
  space.plays = false;
  int several = 0, fewer = 0;
  for (int64_t memory : {500000, 700000, 900000, 1100000}) {
    space.memoryBytes = memory;
    auto chosen = chooseStrategies(costs, space, lengths);
    if (!chosen.isOk())
      continue;
    const FoundStep &best = chosen->found().best;
    auto strategies = parseStrategies(chosen->strategies());
    ASSERT_TRUE(strategies.isOk()) << strategies.status().message();
    std::vector<std::string> names;
    for (const Strategy &strategy : *strategies)
      names.push_back(strategy.name);
    auto ranges = parseLengthRanges(chosen->ranges(), names);
    ASSERT_TRUE(ranges.isOk()) << ranges.status().message();
    ASSERT_EQ(static_cast<size_t>(ranges->size()), best.ranges.size());
    for (size_t i = 0; i < best.ranges.size(); ++i) {
      Strategy found = chosen->candidates().strategy(best.ranges[i].candidate);
      found.name = names[i];
      EXPECT_EQ(describeStrategy((*strategies)[i]), describeStrategy(found));
      EXPECT_EQ(ranges->ranges()[i].first, best.ranges[i].first);
      EXPECT_EQ(ranges->ranges()[i].last, best.ranges[i].last);
      EXPECT_EQ(ranges->ranges()[i].strategy, static_cast<int>(i));
    }
    // One strategy needs no word about it.
    if (best.ranges.size() > 1)
      EXPECT_EQ(best.ranges[ranges->home()].candidate, best.home);
    // The shortest lengths have the first name.
    const int shortest = ranges->byLength().front();
    EXPECT_EQ(ranges->ranges()[shortest].name, "a");
    several += best.ranges.size() > 1;
    // Strategies that take the same alone in several numberings are said once.
    const std::string table = chosen->table();
    std::set<std::pair<int, double>> different;
    for (int c = 0; c < chosen->candidates().candidates(); ++c)
      different.insert(
          {chosen->candidates().family(c), chosen->found().singles[c]});
    const size_t alone = table.find("alone\n");
    const size_t end = table.find("\n\n", alone);
    EXPECT_EQ(std::count(table.begin() + static_cast<int64_t>(alone),
                         table.begin() + static_cast<int64_t>(end), '\n'),
              static_cast<int64_t>(different.size()));
    fewer +=
        static_cast<int>(different.size()) < chosen->candidates().candidates();
    EXPECT_THAT(table,
                HasSubstr("--strategies \"" + chosen->strategies() + "\""));
  }
  EXPECT_GT(several, 0);
  EXPECT_GT(fewer, 0);
}

/// What a run of as much memory says of what was found.
Status runOf(const CostModel &costs, const StrategySpace &space,
             const ChosenStrategies &chosen) {
  auto strategies = parseStrategies(chosen.strategies());
  EXPECT_TRUE(strategies.isOk());
  std::vector<std::string> names, notes;
  std::vector<PlannedGraph> graphs;
  for (const Strategy &strategy : *strategies) {
    PlanRequest request;
    request.tokensPerBatch = space.tokensPerStep;
    request.strategy = strategy;
    names.push_back(strategy.name);
    auto graph = planGraph(costs, request, notes);
    EXPECT_TRUE(graph.isOk()) << graph.status().message();
    graphs.push_back(std::move(*graph));
  }
  auto ranges = parseLengthRanges(chosen.ranges(), names);
  EXPECT_TRUE(ranges.isOk());
  auto step = StepGraphs::create(*ranges, std::move(graphs));
  EXPECT_TRUE(step.isOk());
  for (PlannedGraph &graph : (*step)->graphs()) {
    PlanRequest request;
    request.tokensPerBatch = space.tokensPerStep;
    request.strategy = graph.graph->strategy();
    EXPECT_TRUE(limitMicroBatches(**step, graph, request, true,
                                  space.memoryBytes, notes)
                    .isOk());
  }
  EXPECT_TRUE(setLongestSample(**step, chosen.longest()).isOk());
  return sizeStepRegions(**step, space.tokensPerStep, true, space.memoryBytes,
                         false)
      .status();
}

/// At the very edge too. Over links without latency switches pass things on, which
/// the search learns of from the switches of what it found; and the second lengths
/// leave a range with samples that are much shorter than it allows.
TEST(ChooseStrategies, WhatIsFoundHasRoomInARun) {
  const auto table = CostTable::parse(
      "device { name: \"d\" f64_flops: 1e8 f32_flops: 1e8 bf16_flops: 1e8 "
      "bytes_per_second: 1e9 launch_seconds: 1e-5 }\n"
      "cluster { nodes: 2 devices_per_node: 2 inside { latency_seconds: 1e-9 "
      "bytes_per_second: 1e10 } between { latency_seconds: 1e-9 "
      "bytes_per_second: 1e9 } }\n",
      "costs");
  ASSERT_TRUE(table.isOk()) << table.status().message();
  TinyOptions options;
  options.hidden = 48;
  options.blocks = 4;
  options.degrees = {{2, false}, {4, false}};
  const Model model = *Model::create(tinyManifest(options));
  const CostModel costs = *CostModel::create(model, *table);
  StrategySpace space;
  space.ranks = 4;
  space.tokensPerStep = 4096;
  space.plays = false;
  space.zero = {true};
  int several = 0;
  struct Edge {
    int64_t many, few, memory;
  };
  for (const Edge &edge : {Edge{64, 512, 838040}, {16, 128, 208896}}) {
    std::vector<int64_t> lengths(400, edge.many);
    lengths.resize(410, edge.few);
    for (int64_t more = -2048; more <= 2048; more += 1024) {
      space.memoryBytes = edge.memory + more;
      auto chosen = chooseStrategies(costs, space, lengths);
      if (!chosen.isOk() || chosen->found().best.ranges.size() < 2)
        continue;
      ++several;
      EXPECT_EQ(runOf(costs, space, *chosen).message(), "")
          << space.memoryBytes;
    }
  }
  EXPECT_GT(several, 4);
}

/// Runs cut what no strategy has room for, and so does their search.
TEST(ChooseStrategies, SamplesAreCutWhereRunsCutThem) {
  TinyOptions options;
  options.hidden = 12;
  options.blocks = 4;
  options.degrees = {{2, false}, {4, false}};
  const Model model = *Model::create(tinyManifest(options));
  const CostModel costs = twoNodes(model);
  std::vector<int64_t> lengths(400, 10);
  lengths.resize(410, 900);
  StrategySpace space;
  space.ranks = 4;
  space.tokensPerStep = 4096;
  space.plays = false;
  space.memoryBytes = 80000;
  ASSERT_FALSE(chooseStrategies(costs, space, lengths).isOk());
  space.shortens = true;
  auto chosen = chooseStrategies(costs, space, lengths);
  ASSERT_TRUE(chosen.isOk()) << chosen.status().message();
  EXPECT_LT(chosen->longest(), 900);
  EXPECT_GT(chosen->longest(), 10);
  space.memoryBytes = 1000000; // enough
  chosen = chooseStrategies(costs, space, lengths);
  ASSERT_TRUE(chosen.isOk());
  EXPECT_EQ(chosen->longest(), 900);
}

/// What several strategies take is told by plans in the end, and one that is faster
/// alone wins.
TEST(ChooseStrategies, WhatIsFoundIsPlayed) {
  TinyOptions options;
  options.hidden = 48;
  options.blocks = 4;
  options.degrees = {{2, false}, {4, false}};
  plan::Manifest manifest = tinyManifest(options);
  manifest.mutable_facts()->set_positions(1024);
  const Model model = *Model::create(std::move(manifest));
  int several = 0, alone = 0;
  for (double launch : {1e-5, 1e-4})
    for (int64_t memory : {838040, 1000000, 1500000})
      for (auto [few, tokens] :
           {std::pair(512, 4096), {900, 4096}, {300, 1024}, {512, 1024}}) {
        const auto table = CostTable::parse(
            formatText("device { name: \"d\" f64_flops: 1e8 f32_flops: 1e8 "
                       "bf16_flops: 1e8 bytes_per_second: 1e9 launch_seconds: "
                       "%g } cluster { nodes: 2 devices_per_node: 2 inside { "
                       "bytes_per_second: 1e10 } between { bytes_per_second: "
                       "1e9 } }",
                       launch),
            "costs");
        ASSERT_TRUE(table.isOk()) << table.status().message();
        const CostModel costs = *CostModel::create(model, *table);
        std::vector<int64_t> lengths(400, 64);
        lengths.resize(410, few);
        StrategySpace space;
        space.ranks = 4;
        space.tokensPerStep = tokens;
        space.zero = {true};
        space.memoryBytes = memory;
        space.plays = false;
        auto expected = chooseStrategies(costs, space, lengths);
        space.plays = true;
        auto chosen = chooseStrategies(costs, space, lengths);
        ASSERT_EQ(expected.isOk(), chosen.isOk());
        if (!chosen.isOk() || expected->found().best.ranges.size() < 2)
          continue;
        const std::string text = chosen->table(), json = chosen->json();
        EXPECT_THAT(text, HasSubstr("planned and played: "));
        const std::string set = expected->strategies();
        if (json.find("played_alone_seconds") == std::string::npos) {
          EXPECT_THAT(text, HasSubstr("and no single strategy has room"));
          continue;
        }
        auto number = [&](const std::string &key) {
          const size_t at = json.find("\"" + key + "\": ");
          EXPECT_NE(at, std::string::npos) << json;
          return std::stod(json.substr(at + key.size() + 4));
        };
        const double found = number("played_seconds"),
                     single = number("played_alone_seconds");
        if (chosen->found().best.ranges.size() > 1) {
          EXPECT_LE(1.0199 * found, single);
          EXPECT_EQ(chosen->strategies(), expected->strategies());
          ++several;
        } else {
          EXPECT_LT(single, 1.0201 * found);
        }
        // Had one been faster.
        for (int candidate = 0; candidate < expected->candidates().candidates();
             ++candidate) {
          if (!std::isfinite(expected->found().singles[candidate]))
            continue;
          ChosenStrategies::Played played{1, 2.0, {}, SingleStrategy()};
          played.alone->request.strategy =
              expected->candidates().strategy(candidate);
          played.alone->expected = played.alone->seconds = 1.0;
          expected->take(played);
          EXPECT_EQ(expected->ranges(), "a: 0-");
          Strategy named = expected->candidates().strategy(candidate);
          named.name = "a";
          EXPECT_EQ(expected->strategies(), describeStrategy(named));
          EXPECT_THAT(expected->table(),
                      AllOf(HasSubstr("played: this one 1.000 s, and what "
                                      "estimates favour, with "),
                            HasSubstr(" s, 2.000 s: " + set + "\n")));
          ++alone;
          // Had no order fitted.
          constexpr double none = std::numeric_limits<double>::infinity();
          played.found = none;
          expected->take(played);
          EXPECT_THAT(expected->table(),
                      HasSubstr(" s, has no order that fits: " + set + "\n"));
          EXPECT_THAT(expected->json(), Not(HasSubstr("played_seconds")));
        }
      }
  EXPECT_GT(several, 0);
  EXPECT_GT(alone, 0);
}

/// Where nothing has room, what is said to be enough is.
TEST(ChooseStrategies, ALackOfRoomIsSaidWithWhatIsEnough) {
  TinyOptions options;
  options.hidden = 12;
  options.blocks = 4;
  options.degrees = {{2, false}, {4, false}};
  const Model model = *Model::create(tinyManifest(options));
  const CostModel costs = twoNodes(model);
  std::vector<int64_t> lengths(400, 10);
  lengths.resize(410, 900);
  StrategySpace space;
  space.ranks = 4;
  space.tokensPerStep = 4096;
  space.plays = false;
  space.memoryBytes = 80000;
  auto refused = chooseStrategies(costs, space, lengths);
  ASSERT_FALSE(refused.isOk());
  const std::string &message = refused.status().message();
  EXPECT_EQ(refused.status().code(), StatusCode::ResourceExhausted);
  EXPECT_THAT(message, HasSubstr("none has room for samples of 900 tokens in "
                                 "78.1 KiB of a rank: 'dp="));
  EXPECT_THAT(message, HasSubstr("for parameters and their state and "));
  EXPECT_THAT(message, HasSubstr("; it has room for samples of at most "));
  const std::string before = " for such a sample (";
  const size_t at = message.find(before);
  ASSERT_NE(at, std::string::npos);
  space.memoryBytes = std::stoll(message.substr(at + before.size()));
  ASSERT_GT(space.memoryBytes, 80000);
  auto chosen = chooseStrategies(costs, space, lengths);
  EXPECT_TRUE(chosen.isOk()) << chosen.status().message();
  --space.memoryBytes;
  EXPECT_FALSE(chooseStrategies(costs, space, lengths).isOk());
}

} // namespace
