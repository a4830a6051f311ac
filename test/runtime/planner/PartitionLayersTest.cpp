//===- PartitionLayersTest.cpp - The cut of the layers into stages --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/PartitionLayers.h"

#include "runtime/abi/Random.h"
#include "runtime/planner/cut/DealSamples.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;

namespace {

/// The largest stage, and the sum of the squares of all.
struct Sums {
  double largest = 0, squares = 0;
};

Sums sumsOf(const std::vector<double> &costs, const std::vector<int> &cut) {
  Sums sums;
  size_t layer = 0;
  for (int layers : cut) {
    double sum = 0;
    for (int i = 0; i < layers; ++i)
      sum += costs[layer++];
    sums.largest = std::max(sums.largest, sum);
    sums.squares += sum * sum;
  }
  EXPECT_EQ(layer, costs.size());
  return sums;
}

double largestStage(const std::vector<double> &costs,
                    const std::vector<int> &cut) {
  return sumsOf(costs, cut).largest;
}

struct BestCut {
  double largest = 1e300, squares = 1e300;
  std::vector<int> cut; ///< the last one in the order of their first stages
};

BestCut bestByTryingAll(const std::vector<double> &costs, int stages) {
  BestCut best;
  std::vector<int> cut;
  std::function<void(int)> place = [&](int left) {
    if (static_cast<int>(cut.size()) == stages - 1) {
      cut.push_back(left);
      const Sums sums = sumsOf(costs, cut);
      if (sums.largest < best.largest)
        best = {sums.largest, 1e300, {}};
      if (sums.largest == best.largest &&
          sums.squares <= best.squares * (1 + 1e-12))
        best = {sums.largest, sums.squares, cut};
      cut.pop_back();
      return;
    }
    int behind = stages - 1 - static_cast<int>(cut.size());
    for (int take = 1; take <= left - behind; ++take) {
      cut.push_back(take);
      place(left - take);
      cut.pop_back();
    }
  };
  place(static_cast<int>(costs.size()));
  return best;
}

TEST(PartitionLayersTest, IsTheOptimum) {
  uint64_t counter = 0;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  for (int round = 0; round < 1000; ++round) {
    std::vector<double> costs(1 + random(9));
    // Few values make many cuts alike.
    const uint64_t values = round % 2 ? 1000 : 3;
    for (double &cost : costs)
      cost = random(4) == 0 ? 0 : static_cast<double>(random(values)) / 7;
    int stages = 1 + static_cast<int>(random(costs.size()));
    const BestCut best = bestByTryingAll(costs, stages);
    EXPECT_EQ(partitionLayers(costs, stages), best.cut);
  }
}

// A head that takes a little more than a block leaves one of eight stages its
// largest with five blocks, whatever the others have.
TEST(PartitionLayersTest, OtherStagesAreEven) {
  std::vector<double> costs(34, 1);
  costs.front() = 0.01;
  costs.back() = 1.2;
  EXPECT_THAT(partitionLayers(costs, 8), ElementsAre(5, 5, 4, 4, 4, 4, 4, 4));
  EXPECT_THAT(partitionLayers(std::vector<double>(200, 0.1), 7),
              ElementsAre(29, 29, 29, 29, 28, 28, 28));
}

TEST(PartitionLayersTest, HeavyEndsGetFewLayers) {
  // An embedding without cost and a head worth three blocks.
  EXPECT_THAT(partitionLayers({0, 1, 1, 1, 1, 1, 1, 3}, 2), ElementsAre(6, 2));
  EXPECT_THAT(partitionLayers({0, 0, 0}, 3), ElementsAre(1, 1, 1));
}

// Where costs are not known yet: the first cut that is, for the worst of them, about
// as good as any that is best for one of them.
TEST(PartitionLayersTest, OneCutForSeveralCosts) {
  uint64_t counter = 900;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  int differ = 0;
  for (int round = 0; round < 300; ++round) {
    std::vector<std::vector<double>> costs(3);
    const size_t layers = 2 + random(7);
    for (auto &own : costs)
      for (size_t l = 0; l < layers; ++l)
        own.push_back(static_cast<double>(1 + random(100)));
    const int stages = 1 + static_cast<int>(random(layers));
    auto timesOf = [&](const std::vector<int> &cut) {
      double times = 0;
      for (const auto &own : costs)
        times = std::max(times, largestStage(own, cut) /
                                    bestByTryingAll(own, stages).largest);
      return times;
    };
    const std::vector<int> cut = partitionLayersForAny(costs, stages);
    double least = std::numeric_limits<double>::infinity();
    for (const auto &own : costs)
      least = std::min(least, timesOf(partitionLayers(own, stages)));
    EXPECT_LE(timesOf(cut), mostWorseCut * least + 1e-12);
    for (const auto &own : costs) {
      const std::vector<int> best = partitionLayers(own, stages);
      if (cut == best)
        break; // those before it are worse
      EXPECT_GT(timesOf(best), mostWorseCut * least - 1e-12);
      ++differ;
    }
    EXPECT_EQ(partitionLayersForAny({costs[0]}, stages),
              partitionLayers(costs[0], stages));
  }
  EXPECT_GT(differ, 50);
}

// Without recomputation the head is worth a little more than a layer, with it less:
// what is nearly as even there stays as it is best where nothing is recomputed.
TEST(PartitionLayersTest, NothingIsRecomputedWhereThereIsRoom) {
  std::vector<double> none(34, 1), full(34, 1.334);
  none.front() = full.front() = 0.01;
  none.back() = full.back() = 1.02;
  EXPECT_THAT(partitionLayersForAny({none, full}, 8),
              ElementsAre(5, 5, 4, 4, 4, 4, 4, 4));
  EXPECT_THAT(partitionLayersForAny({full, none}, 8),
              ElementsAre(5, 4, 4, 4, 4, 4, 4, 5));
}

TEST(DealSamplesTest, NearTheBestMakespan) {
  uint64_t counter = 77;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  for (int round = 0; round < 200; ++round) {
    std::vector<int64_t> lengths(1 + random(9));
    for (int64_t &length : lengths)
      length = static_cast<int64_t>(1 + random(100));
    int replicas = 1 + static_cast<int>(random(4));
    auto dealt = dealSamples(lengths, replicas, 0);
    std::vector<int> seen(lengths.size(), 0);
    int64_t makespan = 0;
    for (const auto &samples : dealt) {
      int64_t sum = 0;
      EXPECT_TRUE(std::is_sorted(samples.begin(), samples.end()));
      for (int64_t sample : samples)
        ++seen[sample], sum += lengths[sample];
      makespan = std::max(makespan, sum);
    }
    EXPECT_THAT(seen, testing::Each(1));
    int64_t best = INT64_MAX;
    std::vector<int64_t> load(replicas, 0);
    std::function<void(size_t)> place = [&](size_t sample) {
      if (sample == lengths.size()) {
        best = std::min(best, *std::max_element(load.begin(), load.end()));
        return;
      }
      for (int64_t &sum : load) {
        sum += lengths[sample];
        place(sample + 1);
        sum -= lengths[sample];
      }
    };
    if (lengths.size() <= 7) {
      place(0);
      EXPECT_LE(3 * makespan, 4 * best);
    }
  }
  // Attention makes one long sample worth more than its tokens.
  EXPECT_EQ(dealSamples({40, 10, 10, 10, 10, 10}, 2, 1)[0],
            std::vector<int64_t>{0});
}

} // namespace
