//===- DiffuseLayersTest.cpp - Diffusion beside the best cut --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/DiffuseLayers.h"

#include "test/runtime/elastic/AllCuts.h"

#include <cmath>
#include <gmock/gmock.h>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;

namespace {

std::vector<double> drawCosts(int layers, Draw &draw) {
  std::vector<double> costs(layers);
  for (double &cost : costs)
    cost = draw.below(100) / 7.0;
  return costs;
}

/// Returns a cut of so many layers into stages that are not empty.
std::vector<int> drawCut(int layers, int stages, Draw &draw) {
  std::vector<int> cut(stages, 1);
  for (int left = layers - stages; left > 0; --left)
    ++cut[draw.below(stages)];
  return cut;
}

bool fits(const LayerBytes &bytes, const std::vector<int> &cut, size_t stage) {
  const auto begin =
      static_cast<size_t>(std::accumulate(cut.begin(), cut.begin() + stage, 0));
  int64_t held = 0;
  for (size_t l = begin; l < begin + cut[stage]; ++l)
    held += bytes.at(static_cast<int>(stage), static_cast<int>(l));
  return held <= bytes.limits[stage];
}

/// Returns the cuts that differ by one layer at one border.
std::vector<std::vector<int>> movesOf(const std::vector<int> &cut) {
  std::vector<std::vector<int>> cuts;
  for (size_t s = 0; s + 1 < cut.size(); ++s)
    for (int way : {-1, 1})
      if (cut[s] + way > 0 && cut[s + 1] - way > 0) {
        cuts.push_back(cut);
        cuts.back()[s] += way;
        cuts.back()[s + 1] -= way;
      }
  return cuts;
}

// No move of one layer lowers the variance any more, and none of those before raised it.
TEST(DiffuseLayersTest, EndsWhereNoMoveLowersTheVariance) {
  Draw draw(31);
  int64_t moves = 0;
  for (int round = 0; round < 500; ++round) {
    const int stages = 1 + draw.below(8);
    const int layers = stages + draw.below(20);
    const std::vector<double> costs = drawCosts(layers, draw);
    const std::vector<int> first = drawCut(layers, stages, draw);
    const DiffusedCut found = diffuseLayers(costs, first);
    moves += found.moves;
    EXPECT_EQ(std::accumulate(found.layers.begin(), found.layers.end(), 0),
              layers);
    const double variance = varianceOf(costs, found.layers);
    EXPECT_LE(variance, varianceOf(costs, first) * (1 + 1e-9));
    EXPECT_EQ(found.moves == 0, found.layers == first);
    for (const std::vector<int> &next : movesOf(found.layers))
      EXPECT_GE(varianceOf(costs, next), variance * (1 - 1e-9) - 1e-9);
    EXPECT_EQ(diffuseLayers(costs, found.layers).moves, 0);
    EXPECT_GE(variance,
              varianceOf(costs, found.layers) * (1 - 1e-12)); // deterministic
  }
  EXPECT_GT(moves, 1000);
}

TEST(DiffuseLayersTest, StagesGetNoMoreThanTheirMemory) {
  Draw draw(31);
  int limited = 0;
  for (int round = 0; round < 500; ++round) {
    const int stages = 2 + draw.below(4);
    const int layers = stages + draw.below(12);
    const std::vector<double> costs = drawCosts(layers, draw);
    const LayerBytes bytes = drawBytes(layers, stages, draw);
    const std::vector<int> first = drawCut(layers, stages, draw);
    const DiffusedCut found = diffuseLayers(costs, first, &bytes);
    limited += found.layers != diffuseLayers(costs, first).layers;
    // A stage that never got a layer may have been too large before.
    int begin = 0, firstBegin = 0;
    for (size_t s = 0; s < found.layers.size(); ++s) {
      const int end = begin + found.layers[s], firstEnd = firstBegin + first[s];
      const bool gotNone = begin >= firstBegin && end <= firstEnd;
      EXPECT_TRUE(gotNone || fits(bytes, found.layers, s));
      begin = end;
      firstBegin = firstEnd;
    }
  }
  EXPECT_GT(limited, 50);
}

TEST(DiffuseLayersTest, LoadFlowsFromStageToStage) {
  const std::vector<double> equal(12, 1);
  const DiffusedCut found = diffuseLayers(equal, {9, 1, 1, 1});
  // Neighbours differ by one layer, which no move between two of them changes. The best
  // cut has three layers in each stage.
  EXPECT_THAT(found.layers, ElementsAre(4, 3, 3, 2));
  EXPECT_GT(found.rounds, 2);
  EXPECT_EQ(diffuseLayers({5, 1, 1, 1, 1}, {1, 4}).moves, 0);
  EXPECT_THAT(diffuseLayers({5, 1, 1, 1, 1}, {4, 1}).layers, ElementsAre(1, 4));
  // One layer that is as large as all others stays where it is.
  EXPECT_THAT(diffuseLayers({1, 1, 10}, {1, 2}).layers, ElementsAre(2, 1));
}

TEST(DiffuseLayersTest, Lemma2) {
  EXPECT_DOUBLE_EQ(roundsOfLemma2(8, 8, 1e-6),
                   64 * std::log(64e6) * std::log(8));
  EXPECT_DOUBLE_EQ(roundsOfLemma2(8, 8, 2), 32 * std::log(8));
}

} // namespace
