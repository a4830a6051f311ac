//===- PackForPipelineTest.cpp - Ragged bins against all of them ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PackForPipeline.h"
#include "runtime/abi/Random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;

namespace {

using Lengths = std::vector<int64_t>;

RaggedCosts affine(double start, double token, double square) {
  RaggedCosts costs;
  costs.seconds = [=](const Load &load) {
    return start + token * static_cast<double>(load.queries) +
           square * static_cast<double>(load.pairs);
  };
  costs.bytes = [](const Load &load) { return load.queries; };
  return costs;
}

double bestOfAllBins(const Lengths &lengths, const RaggedCosts &costs,
                     const PartitionOptions &options) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<Load> bins;
  std::function<void(size_t)> place = [&](size_t sample) {
    if (sample == lengths.size()) {
      double largest = 0, sum = 0;
      for (const Load &bin : bins) {
        largest = std::max(largest, costs.seconds(bin));
        sum += costs.seconds(bin);
      }
      best = std::min(best,
                      (options.stages - 1) * largest + sum / options.replicas);
      return;
    }
    for (size_t b = 0; b < bins.size(); ++b) {
      const Load before = bins[b];
      bins[b] = before + loadOfSample(lengths[sample]);
      if (costs.bytes(bins[b]) <= options.shareBytes)
        place(sample + 1);
      bins[b] = before;
    }
    bins.push_back(loadOfSample(lengths[sample]));
    place(sample + 1);
    bins.pop_back();
  };
  place(0);
  return best;
}

void checkBins(const MicroBatchPartition &packed, const Lengths &lengths,
               const RaggedCosts &costs, const PartitionOptions &options) {
  std::vector<int> seen(lengths.size(), 0);
  double largest = 0, sum = 0;
  ASSERT_EQ(packed.seconds.size(), packed.microBatches.size());
  for (size_t m = 0; m < packed.seconds.size(); ++m) {
    Load load;
    ASSERT_FALSE(packed.microBatches[m].empty());
    EXPECT_TRUE(std::is_sorted(packed.microBatches[m].begin(),
                               packed.microBatches[m].end()));
    for (int64_t sample : packed.microBatches[m]) {
      ++seen[sample];
      load += loadOfSample(lengths[sample]);
    }
    EXPECT_LE(costs.bytes(load),
              load.segments > 1 ? options.shareBytes : options.limitBytes);
    EXPECT_EQ(packed.seconds[m], costs.seconds(load));
    largest = std::max(largest, packed.seconds[m]);
    sum += packed.seconds[m];
  }
  EXPECT_THAT(seen, testing::Each(1));
  EXPECT_TRUE(
      std::is_sorted(packed.microBatches.begin(), packed.microBatches.end()));
  EXPECT_EQ(packed.objective,
            (options.stages - 1) * largest + sum / options.replicas);
}

TEST(PackForPipelineTest, NearTheBestOfAllBins) {
  uint64_t counter = 5;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  int optimal = 0;
  constexpr int rounds = 1500;
  double total = 0;
  for (int round = 0; round < rounds; ++round) {
    Lengths lengths(1 + random(7));
    for (int64_t &length : lengths)
      length = static_cast<int64_t>(1 + random(60));
    RaggedCosts costs = affine(static_cast<double>(random(50)), 1,
                               static_cast<double>(random(3)) / 128);
    PartitionOptions options;
    options.stages = 1 + static_cast<int>(random(6));
    options.replicas = 1 + static_cast<int>(random(3));
    options.shareBytes = static_cast<int64_t>(20 + random(140));
    auto packed = packForPipeline(lengths, costs, options);
    ASSERT_TRUE(packed.isOk());
    checkBins(*packed, lengths, costs, options);
    double best = bestOfAllBins(lengths, costs, options);
    EXPECT_LE(packed->objective, 1.2 * best);
    total += packed->objective / best;
    optimal += packed->objective <= best * (1 + 1e-12);
  }
  EXPECT_GE(optimal, rounds * 98 / 100);
  EXPECT_LE(total / rounds, 1.001);
}

TEST(PackForPipelineTest, TheirNumberFollowsStagesAndWhatStartingCosts) {
  Lengths lengths(64, 10);
  auto bins = [&](double start, int stages) {
    PartitionOptions options;
    options.stages = stages;
    auto packed = packForPipeline(lengths, affine(start, 1, 0), options);
    return packed->microBatches.size();
  };
  // One stage has nothing to fill: as few as there is room for.
  EXPECT_EQ(bins(10, 1), 1u);
  // (stages - 1) * (10 + 640 / n) + 10 n + 640 is least at n = 8 sqrt(stages - 1).
  EXPECT_EQ(bins(10, 2), 8u);
  EXPECT_EQ(bins(10, 5), 16u);
  EXPECT_EQ(bins(0, 5), 64u);
}

/// 30 + 30 + 20 + 20 + 20, longest first, is dealt as 70 and 50.
TEST(PackForPipelineTest, SamplesChangePlacesWhereDealingIsUneven) {
  PartitionOptions options;
  options.stages = 2;
  auto packed =
      packForPipeline({30, 30, 20, 20, 20}, affine(30, 1, 0), options);
  ASSERT_TRUE(packed.isOk());
  EXPECT_THAT(packed->microBatches,
              ElementsAre(ElementsAre(0, 1), ElementsAre(2, 3, 4)));
  EXPECT_EQ(packed->objective, 90 + 180);
}

/// Steps of an eighth go past 100 (94, 106) and 112 (106, 120), where all bins
/// are full: 12 * (10 + 100) + 1000, or 12 * (10 + 90) + 1120, besides the work.
TEST(PackForPipelineTest, TheirNumberIsRefined) {
  PartitionOptions options;
  options.stages = 13;
  auto packed = packForPipeline(Lengths(1000, 10), affine(10, 1, 0), options);
  ASSERT_TRUE(packed.isOk());
  EXPECT_EQ(packed->objective, 10000 + 2320);
}

TEST(PackForPipelineTest, ALongSampleRelaxesNothingForOthers) {
  PartitionOptions options;
  options.shareBytes = 20;
  options.limitBytes = 100;
  auto packed =
      packForPipeline({10, 10, 90, 10, 10}, affine(1000, 1, 0), options);
  ASSERT_TRUE(packed.isOk());
  checkBins(*packed, {10, 10, 90, 10, 10}, affine(1000, 1, 0), options);
  EXPECT_THAT(
      packed->microBatches,
      ElementsAre(ElementsAre(0, 1), ElementsAre(2), ElementsAre(3, 4)));
}

/// Nor does it keep them from being level: 90 alone, and not 3 times 40 where
/// there is room for that.
TEST(PackForPipelineTest, OthersAreLevelBesideALongSample) {
  RaggedCosts costs = affine(1, 1, 0);
  costs.bytes = [](const Load &load) { return load.pairs; };
  PartitionOptions options;
  options.stages = 10;
  options.shareBytes = 5000;
  Lengths lengths = {40, 40, 40, 90, 40, 40, 40};
  auto packed = packForPipeline(lengths, costs, options);
  ASSERT_TRUE(packed.isOk());
  checkBins(*packed, lengths, costs, options);
  EXPECT_EQ(packed->objective, 9 * 91 + 4 + 330);
}

/// A mean of equal parts is what no bins are better than.
TEST(PackForPipelineTest, ManySamplesAreLevelAndDeterministic) {
  Lengths lengths;
  for (uint64_t i = 0; i < 2000; ++i)
    lengths.push_back(static_cast<int64_t>(8 + dyna_mix64(i) % 500));
  RaggedCosts costs = affine(100, 1, 1e-3);
  double work = 0;
  for (int64_t length : lengths)
    work += static_cast<double>(length) +
            1e-3 * static_cast<double>(length * length);
  for (int stages : {4, 16}) {
    PartitionOptions options;
    options.stages = stages;
    auto one = packForPipeline(lengths, costs, options);
    auto two = packForPipeline(lengths, costs, options);
    ASSERT_TRUE(one.isOk());
    checkBins(*one, lengths, costs, options);
    EXPECT_EQ(one->microBatches, two->microBatches);
    double bound = std::numeric_limits<double>::infinity();
    for (int bins = 1; bins <= 2000; ++bins)
      bound = std::min(bound, (stages - 1) * (100 + work / bins) + work +
                                  100.0 * bins);
    EXPECT_LE(one->objective, 1.002 * bound);
  }
}

TEST(PackForPipelineTest, RefusesWhatCannotFit) {
  PartitionOptions options;
  options.limitBytes = 10;
  auto message = [&](const Lengths &lengths, const RaggedCosts &costs) {
    return packForPipeline(lengths, costs, options).status().message();
  };
  EXPECT_EQ(message({5, 11}, affine(0, 1, 0)),
            "sample 1 of 11 tokens needs 11 B in a micro-batch of its own, but "
            "there are 10 B");
  EXPECT_EQ(message({5, -1}, affine(0, 1, 0)), "sample 1 has -1 tokens");
  EXPECT_EQ(message({5}, affine(0, -1, 0)), "5 tokens cost -5 seconds");
  EXPECT_TRUE(
      packForPipeline({}, affine(0, 1, 0), options)->microBatches.empty());
  options.replicas = 0;
  EXPECT_EQ(message({5}, affine(0, 1, 0)),
            "micro-batches for 0 replicas of 1 stages, in multiples of 1: "
            "expects at least 1 of each");
}

} // namespace
