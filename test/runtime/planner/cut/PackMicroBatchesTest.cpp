//===- PackMicroBatchesTest.cpp - Bins against brute force ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/PackMicroBatches.h"
#include "runtime/abi/Random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

using namespace dyna;

namespace {

using Bins = std::vector<std::vector<int64_t>>;

/// Fewest bins, by trying everything.
size_t fewestBins(const std::vector<int64_t> &lengths, int64_t limit) {
  size_t best = lengths.size();
  std::vector<int64_t> bins;
  std::function<void(size_t)> place = [&](size_t sample) {
    if (bins.size() >= best)
      return;
    if (sample == lengths.size()) {
      best = bins.size();
      return;
    }
    for (size_t b = 0; b < bins.size(); ++b)
      if (bins[b] + lengths[sample] <= limit) {
        bins[b] += lengths[sample];
        place(sample + 1);
        bins[b] -= lengths[sample];
      }
    bins.push_back(lengths[sample]);
    place(sample + 1);
    bins.pop_back();
  };
  place(0);
  return best;
}

void checkBins(const Bins &bins, const std::vector<int64_t> &lengths,
               int64_t limit) {
  std::vector<int> seen(lengths.size(), 0);
  for (const std::vector<int64_t> &bin : bins) {
    EXPECT_FALSE(bin.empty());
    EXPECT_TRUE(std::is_sorted(bin.begin(), bin.end()));
    int64_t tokens = 0;
    for (int64_t sample : bin) {
      ++seen[sample];
      tokens += lengths[sample];
    }
    EXPECT_LE(tokens, limit);
  }
  EXPECT_TRUE(std::is_sorted(bins.begin(), bins.end()));
  for (int count : seen)
    EXPECT_EQ(count, 1);
}

TEST(PackMicroBatchesTest, NearTheFewestBinsOfSmallInputs) {
  uint64_t counter = 0;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  int optimal = 0;
  constexpr int rounds = 500;
  for (int round = 0; round < rounds; ++round) {
    std::vector<int64_t> lengths(1 + random(8));
    for (int64_t &length : lengths)
      length = static_cast<int64_t>(1 + random(100));
    int64_t limit = 100 + static_cast<int64_t>(random(60));
    auto bins = packMicroBatches(lengths, {limit, 0.001});
    ASSERT_TRUE(bins.isOk());
    checkBins(*bins, lengths, limit);
    size_t fewest = fewestBins(lengths, limit);
    EXPECT_LE(9 * bins->size(), 11 * fewest + 6);
    optimal += bins->size() == fewest;
  }
  EXPECT_GE(optimal, rounds * 95 / 100);
}

TEST(PackMicroBatchesTest, BinsAreBalanced) {
  auto bins = packMicroBatches({10, 10, 10, 10}, {30, 0});
  ASSERT_TRUE(bins.isOk());
  // First fit alone would give 3 and 1.
  EXPECT_THAT(*bins,
              testing::ElementsAre(testing::SizeIs(2), testing::SizeIs(2)));
  // One long sample weighs more than its tokens when pairs cost something.
  auto heavy = packMicroBatches({40, 10, 10, 10, 10, 10}, {70, 1});
  ASSERT_TRUE(heavy.isOk());
  EXPECT_EQ((*heavy)[0], std::vector<int64_t>{0});
}

TEST(PackMicroBatchesTest, IsDeterministicOnManySamples) {
  std::vector<int64_t> lengths;
  for (uint64_t i = 0; i < 3000; ++i)
    lengths.push_back(static_cast<int64_t>(dyna_mix64(i) % 500));
  auto one = packMicroBatches(lengths, {2048, 0.001});
  auto two = packMicroBatches(lengths, {2048, 0.001});
  ASSERT_TRUE(one.isOk());
  EXPECT_EQ(*one, *two);
  checkBins(*one, lengths, 2048);
  int64_t tokens = std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
  EXPECT_LE(one->size(), static_cast<size_t>(tokens / 2048 + 2));
}

TEST(PackMicroBatchesTest, RefusesWhatCannotFit) {
  EXPECT_THAT(packMicroBatches({5, 11}, {10, 0}).status().message(),
              testing::HasSubstr("sample 1 has 11 tokens, but a micro-batch "
                                 "holds at most 10"));
  EXPECT_FALSE(packMicroBatches({5}, {0, 0}).isOk());
  EXPECT_TRUE(packMicroBatches({}, {10, 0})->empty());
}

} // namespace
