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

BestCut bestByTryingAll(
    const std::vector<double> &costs, int stages,
    const std::function<bool(const std::vector<int> &)> &isAllowed = nullptr) {
  BestCut best;
  std::vector<int> cut;
  std::function<void(int)> place = [&](int left) {
    if (static_cast<int>(cut.size()) == stages - 1) {
      cut.push_back(left);
      if (isAllowed && !isAllowed(cut)) {
        cut.pop_back();
        return;
      }
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

/// The memory of stages for some layers; every stage has as many micro-batches in flight
/// as there are stages behind it, and itself.
LayerBytes drawBytes(size_t layers, int stages,
                     const std::function<uint64_t(uint64_t)> &random) {
  LayerBytes bytes;
  for (size_t l = 0; l < layers; ++l) {
    bytes.own.push_back(static_cast<int64_t>(random(20)));
    bytes.kept.push_back(static_cast<int64_t>(random(10)));
  }
  for (int s = 0; s < stages; ++s) {
    bytes.inFlight.push_back(stages - s);
    bytes.limits.push_back(20 + static_cast<int64_t>(random(150)));
  }
  return bytes;
}

bool hasRoom(const LayerBytes &bytes, const std::vector<int> &cut) {
  size_t layer = 0;
  for (size_t s = 0; s < cut.size(); ++s) {
    int64_t held = 0;
    for (int i = 0; i < cut[s]; ++i, ++layer)
      held += bytes.own[layer] + bytes.inFlight[s] * bytes.kept[layer];
    if (held > bytes.limits[s])
      return false;
  }
  return true;
}

TEST(PartitionLayersTest, IsTheOptimumWithinMemory) {
  uint64_t counter = 5000;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  int refused = 0, limited = 0, alone = 0;
  for (int round = 0; round < 1500; ++round) {
    std::vector<double> costs(1 + random(12));
    for (double &cost : costs)
      cost = static_cast<double>(random(round % 2 ? 1000 : 4)) / 7;
    const int stages =
        1 + static_cast<int>(random(std::min<uint64_t>(5, costs.size())));
    const LayerBytes bytes = drawBytes(costs.size(), stages, random);
    const BestCut best =
        bestByTryingAll(costs, stages, [&](const std::vector<int> &cut) {
          return hasRoom(bytes, cut);
        });
    auto found = partitionLayersWithin(costs, stages, bytes);
    ASSERT_EQ(found.isOk(), !best.cut.empty());
    if (!found.isOk()) {
      ++refused;
      EXPECT_EQ(found.status().code(), StatusCode::ResourceExhausted);
      continue;
    }
    EXPECT_EQ(*found, best.cut);
    limited += best.cut != partitionLayers(costs, stages);
    for (int s = 0; s < stages; ++s)
      for (size_t l = 0; l < costs.size(); ++l)
        if (bytes.own[l] + bytes.inFlight[s] * bytes.kept[l] >
            bytes.limits[s]) {
          ++alone;
          s = stages - 1;
          break;
        }
  }
  EXPECT_GT(refused, 100);
  EXPECT_GT(limited, 100); // memory changes the cut
  EXPECT_GT(alone, 100);   // a layer does not fit everywhere
}

// As many stages as a large cluster has. No stage can be below the largest layer or the
// mean, and a stage with the next layer would be above the limit.
TEST(PartitionLayersTest, ManyLayersAndStages) {
  uint64_t counter = 77;
  std::vector<double> costs(1000);
  for (double &cost : costs)
    cost = 1 + static_cast<double>(dyna_mix64(++counter) % 1000) / 500;
  const std::vector<int> cut = partitionLayers(costs, 512);
  ASSERT_EQ(cut.size(), 512u);
  const Sums sums = sumsOf(costs, cut);
  const double largest = *std::max_element(costs.begin(), costs.end());
  const double mean = std::accumulate(costs.begin(), costs.end(), 0.0) / 512;
  EXPECT_GE(sums.largest, std::max(largest, mean));
  EXPECT_LE(sums.largest, largest + mean);
  LayerBytes bytes;
  bytes.own.assign(1000, 1);
  bytes.kept.assign(1000, 0);
  bytes.inFlight.assign(512, 1);
  bytes.limits.assign(512, 1000);
  auto within = partitionLayersWithin(costs, 512, bytes);
  ASSERT_TRUE(within.isOk());
  EXPECT_EQ(*within, cut);
  bytes.limits.assign(512, 2); // 488 stages of two layers and 24 of one
  within = partitionLayersWithin(costs, 512, bytes);
  ASSERT_TRUE(within.isOk());
  EXPECT_LE(*std::max_element(within->begin(), within->end()), 2);
  bytes.limits.assign(512, 1);
  EXPECT_FALSE(partitionLayersWithin(costs, 512, bytes).isOk());
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
