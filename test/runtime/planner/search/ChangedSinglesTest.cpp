//===- ChangedSinglesTest.cpp - Choices that a search changes -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/planner/search/GivenSingles.h"

#include <algorithm>

using namespace dyna;

namespace {

/// A space with one strategy to change, and its kinds of micro-batches.
SingleSpace changingSpace() {
  SingleSpace space = narrowSpace();
  space.mostRefined = 1;
  space.searchesKinds = true;
  space.searchesChosenModes = false;
  return space;
}

// A layer moves between neighbours at the ends, or from one end to the other. The cut for
// the lengths may be further away.
TEST(ChangedSinglesTest, CutsAreSearched) {
  AloneEstimate estimate = estimateOf("pp=4", 1.0);
  estimate.strategy.layers = {8, 8, 8, 8};
  estimate.layersForLengths = {5, 9, 9, 9};
  // The largest stage decides. Layers of the last two take longer.
  auto seconds = [](const PlanRequest &request, int64_t) {
    std::vector<int> layers = request.strategy.layers;
    if (layers.empty())
      layers = {8, 8, 8, 8};
    double most = 0;
    for (size_t stage = 0; stage < layers.size(); ++stage)
      most = std::max(most, layers[stage] * (stage == 3   ? 1.25
                                             : stage == 2 ? 1.2
                                                          : 1.0));
    return most;
  };
  SingleSpace space = fixedSpace();
  const FoundSingles moved = search({estimate}, space, seconds);
  EXPECT_EQ(moved.fitting.front().seconds, 8 * 1.2);
  EXPECT_EQ(moved.fitting.front().request.strategy.layers,
            (std::vector<int>{9, 8, 8, 7}));
  estimate.layersForLengths = {9, 9, 9, 5};
  auto ofLengths = [&](const PlanRequest &request, int64_t step) {
    return request.strategy.layers == estimate.layersForLengths
               ? 7.0
               : seconds(request, step);
  };
  const FoundSingles found = search({estimate}, space, ofLengths);
  EXPECT_EQ(found.fitting.front().request.strategy.layers,
            estimate.layersForLengths);
}

// Changes follow each other: another kind first, then another cut. What takes as long as
// before is the same plan, which is listed once.
TEST(ChangedSinglesTest, ChangesAddUp) {
  AloneEstimate estimate = estimateOf("pp=2", 1.5);
  estimate.strategy.layers = {1, 3};
  estimate.layersForLengths = {3, 1};
  estimate.besideSeconds = 0.5;
  Asked asked;
  SingleSpace space;
  space.searchesSizes = space.searchesChosenModes = false;
  const FoundSingles found = search(
      {estimate}, space,
      asked.simulating(table({{"dp=1,tp=1,pp=2", 1.0},
                              {"dp=1,tp=1,pp=2 padded", 1.0},
                              {"dp=1,tp=1,pp=2 tokens", 0.9},
                              {"dp=1,tp=1,pp=2,layers=3+1", 1.1},
                              {"dp=1,tp=1,pp=2,layers=2+2", 1.2},
                              {"dp=1,tp=1,pp=2,layers=3+1 tokens", 0.7},
                              {"dp=1,tp=1,pp=2,layers=2+2 tokens", 0.95}})),
      table({}, 1.0));
  ASSERT_FALSE(found.fitting.empty());
  EXPECT_EQ(found.fitting[0].name(), "dp=1,tp=1,pp=2,layers=3+1 tokens");
  EXPECT_EQ(asked.simulated.count("dp=1,tp=1,pp=2,layers=0+4"), 0u);
  for (const SingleStrategy &single : found.fitting) {
    EXPECT_EQ(single.expected, 1.5) << single.name();
    EXPECT_NE(single.name(), "dp=1,tp=1,pp=2 padded");
  }
}

// The fastest step is the start of changes, not the lowest estimate.
TEST(ChangedSinglesTest, ChangesStartFromTheFastest) {
  Asked asked;
  search({estimateOf("dp=4", 1), estimateOf("tp=4", 1.01)}, changingSpace(),
         asked.simulating(
             table({{"dp=4,tp=1,pp=1", 1.1}, {"dp=1,tp=4,pp=1", 1.0}})),
         table({}, 1));
  EXPECT_EQ(asked.simulated.count("dp=1,tp=4,pp=1 tokens"), 1u);
  EXPECT_EQ(asked.simulated.count("dp=4,tp=1,pp=1 tokens"), 0u);
}

// Once a change is faster, the others have to be near its estimate.
TEST(ChangedSinglesTest, AFasterChangeLowersTheLimit) {
  Asked asked;
  const SecondsOf seconds = table({{"dp=4,tp=1,pp=1", 1.0},
                                   {"dp=4,tp=1,pp=1 padded", 0.8},
                                   {"dp=4,tp=1,pp=1 tokens", 0.9}});
  search({estimateOf("dp=4", 1)}, changingSpace(), asked.simulating(seconds),
         seconds);
  EXPECT_EQ(asked.simulated.count("dp=4,tp=1,pp=1 padded"), 1u);
  EXPECT_EQ(asked.simulated.count("dp=4,tp=1,pp=1 tokens"), 0u);
}

// Changes go on from the fastest one, not from the last one that is faster than the start.
TEST(ChangedSinglesTest, TheFastestChangeIsChangedFurther) {
  const FoundSingles found = search(
      {estimateOf("dp=4", 1)},
      [] {
        SingleSpace space = changingSpace();
        space.searchesSizes = true;
        return space;
      }(),
      table({{"dp=4,tp=1,pp=1", 1.0},
             {"dp=4,tp=1,pp=1 padded", 0.8},
             {"dp=4,tp=1,pp=1 tokens", 0.9},
             {"dp=4,tp=1,pp=1 padded tokens=2048", 0.7}}),
      table({}, 1));
  EXPECT_EQ(found.fitting[0].name(), "dp=4,tp=1,pp=1 padded tokens=2048");
}

// A change without room leaves the start in the list. One that is as fast as another
// change, but not as fast as the start, is another plan.
TEST(ChangedSinglesTest, OnlyTheSamePlanIsDropped) {
  FoundSingles found =
      search({estimateOf("dp=4", 1)}, changingSpace(),
             table({{"dp=4,tp=1,pp=1", 1.0}}, never), table({}, 1));
  ASSERT_EQ(found.fitting.size(), 1u);
  EXPECT_EQ(found.lacking.size(), 2u);
  found = search({estimateOf("dp=4", 1)}, changingSpace(),
                 table({{"dp=4,tp=1,pp=1", 1.0}}, 0.9), table({}, 1));
  EXPECT_EQ(found.fitting.size(), 3u);
}

// Each request is estimated and simulated once, although changes lead back, and the
// strategies are given twice. The cut for the lengths may be the usual cut.
TEST(ChangedSinglesTest, NothingIsAskedTwice) {
  SingleSpace space = changingSpace();
  space.searchesSizes = true;
  AloneEstimate estimate = estimateOf("pp=2", 1);
  estimate.strategy.layers = estimate.layersForLengths = {2, 2};
  std::map<std::string, int> estimated, simulated;
  auto counting = [](std::map<std::string, int> &counts) {
    return [&](const PlanRequest &request, int64_t) {
      ++counts[Asked::nameOf(request)];
      return request.microBatches == "tokens" ? 0.9 : 1.0;
    };
  };
  search({estimate}, space, counting(simulated), counting(estimated));
  EXPECT_GT(simulated.size(), 6u);
  EXPECT_EQ(estimated.count("dp=1,tp=1,pp=2,layers=2+2"), 0u);
  for (const auto &[name, count] : simulated)
    EXPECT_EQ(count, 1) << name;
  for (const auto &[name, count] : estimated)
    EXPECT_EQ(count, 1) << name;
  simulated.clear();
  search({estimate, estimate}, space, counting(simulated), table({}, 1));
  EXPECT_EQ(simulated["dp=1,tp=1,pp=2"], 1);
}

// Layers move on from the cut that was the fastest.
TEST(ChangedSinglesTest, CutsAreChangedFurther) {
  AloneEstimate estimate = estimateOf("pp=2", 1);
  estimate.strategy.layers = {4, 4};
  SingleSpace space = changingSpace();
  space.searchesKinds = false;
  const FoundSingles found = search(
      {estimate}, space,
      [](const PlanRequest &request, int64_t) {
        const std::vector<int> &layers = request.strategy.layers;
        return layers.empty() ? 1.0 : 1.0 - 0.01 * (layers[0] - 4);
      },
      table({}, 1));
  EXPECT_EQ(found.fitting[0].request.strategy.layers, (std::vector<int>{7, 1}));
}

// A strategy with one mode is changed to chosen modes, which replace the mode.
TEST(ChangedSinglesTest, ChosenModesReplaceAMode) {
  SingleSpace space = changingSpace();
  space.searchesChosenModes = true;
  bool isChosen = false;
  search(
      {estimateOf("tp=4", 1), estimateOf("tp=4,recompute=full", 1.1)}, space,
      [&](const PlanRequest &request, int64_t) {
        if (request.recompute == chooseRecomputeWord) {
          isChosen = true;
          EXPECT_FALSE(request.strategy.recompute);
          return 0.8;
        }
        return request.strategy.recompute ? 1.0 : 1.5;
      },
      [](const PlanRequest &request, int64_t) {
        return request.recompute.empty() ? 1.0 : 0.9;
      });
  EXPECT_TRUE(isChosen);
}

// A strategy with chosen modes keeps its cuts, and what is beside its pipeline.
TEST(ChangedSinglesTest, ChosenModesKeepTheirCuts) {
  AloneEstimate estimate = pressedEstimate("pp=2", 2, 1);
  estimate.strategy.layers = {5, 3};
  estimate.layersForLengths = {2, 6};
  estimate.besideSeconds = 0.5;
  SingleSpace space = changingSpace();
  space.searchesKinds = false;
  // The request may ask for chosen modes, whatever a search would try.
  space.searchesRecompute = false;
  space.requests[0].recompute = chooseRecomputeWord;
  Asked asked;
  const FoundSingles found =
      search({estimate}, space, asked.simulating(table({}, 1)), table({}, 1));
  for (const char *cut : {"2+6", "4+4", "6+2"})
    EXPECT_EQ(asked.simulated.count(std::string("dp=1,tp=1,pp=2,layers=") +
                                    cut + " recompute=auto"),
              1u)
        << cut;
  ASSERT_FALSE(found.fitting.empty());
  EXPECT_EQ(found.fitting[0].expected, 1.5);
}

} // namespace
