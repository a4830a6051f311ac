//===- PartitionLayersTest.cpp - The cut of the layers into stages --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PartitionLayers.h"

#include "runtime/abi/Random.h"
#include "runtime/planner/DealSamples.h"

#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;

namespace {

double largestStage(const std::vector<double> &costs,
                    const std::vector<int> &cut) {
  double largest = 0;
  size_t layer = 0;
  for (int layers : cut) {
    double sum = 0;
    for (int i = 0; i < layers; ++i)
      sum += costs[layer++];
    largest = std::max(largest, sum);
  }
  EXPECT_EQ(layer, costs.size());
  return largest;
}

double bestByTryingAll(const std::vector<double> &costs, int stages) {
  double best = 1e300;
  std::vector<int> cut;
  std::function<void(int)> place = [&](int left) {
    if (static_cast<int>(cut.size()) == stages - 1) {
      cut.push_back(left);
      best = std::min(best, largestStage(costs, cut));
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
  for (int round = 0; round < 400; ++round) {
    std::vector<double> costs(1 + random(9));
    for (double &cost : costs)
      cost = random(4) == 0 ? 0 : static_cast<double>(random(1000)) / 7;
    int stages = 1 + static_cast<int>(random(costs.size()));
    std::vector<int> cut = partitionLayers(costs, stages);
    ASSERT_EQ(cut.size(), static_cast<size_t>(stages));
    EXPECT_THAT(cut, testing::Each(testing::Ge(1)));
    EXPECT_EQ(largestStage(costs, cut), bestByTryingAll(costs, stages));
  }
}

TEST(PartitionLayersTest, HeavyEndsGetFewLayers) {
  // An embedding without cost and a head worth three blocks.
  EXPECT_THAT(partitionLayers({0, 1, 1, 1, 1, 1, 1, 3}, 2), ElementsAre(6, 2));
  EXPECT_THAT(partitionLayers({0, 0, 0}, 3), ElementsAre(1, 1, 1));
}

// Where costs are not known yet, no cut that is best for one of them is nearer to
// the best for the worst of them.
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
        times = std::max(times,
                         largestStage(own, cut) / bestByTryingAll(own, stages));
      return times;
    };
    const std::vector<int> cut = partitionLayersForAny(costs, stages);
    for (const auto &own : costs) {
      EXPECT_LE(timesOf(cut), timesOf(partitionLayers(own, stages)) + 1e-12);
      differ += cut != partitionLayers(own, stages);
    }
    EXPECT_EQ(partitionLayersForAny({costs[0]}, stages),
              partitionLayers(costs[0], stages));
  }
  EXPECT_GT(differ, 100);
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
