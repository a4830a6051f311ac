//===- OrderSamplesTest.cpp - Neighbours are alike ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/OrderSamples.h"
#include "runtime/abi/Random.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <numeric>

using namespace dyna;
using testing::ElementsAre;

namespace {

using Lengths = std::vector<SampleLength>;

struct Walk {
  int64_t way = 0, step = 0;
};

Walk walk(const Lengths &lengths, const std::vector<int64_t> &order) {
  Walk walk;
  for (size_t i = 1; i < order.size(); ++i) {
    const SampleLength &a = lengths[order[i - 1]], &b = lengths[order[i]];
    int64_t distance = std::abs(a.tokens - b.tokens) +
                       std::abs(a.decoderTokens - b.decoderTokens);
    walk.way += distance;
    walk.step = std::max(walk.step, distance);
  }
  return walk;
}

bool isPermutation(std::vector<int64_t> order, size_t count) {
  std::sort(order.begin(), order.end());
  std::vector<int64_t> all(count);
  std::iota(all.begin(), all.end(), 0);
  return order == all;
}

Lengths draw(uint64_t seed, size_t count, uint64_t tokens, uint64_t decoder) {
  Lengths lengths;
  for (uint64_t i = 0; i < count; ++i)
    lengths.push_back(
        {static_cast<int64_t>(dyna_mix64(seed * 2 + (i << 20)) % tokens),
         static_cast<int64_t>(dyna_mix64(seed * 2 + 1 + (i << 20)) % decoder)});
  return lengths;
}

TEST(OrderSamplesTest, SortsByBothKeys) {
  Lengths lengths = {{5, 1}, {3, 9}, {5, 0}, {3, 9}, {4, 7}};
  EXPECT_THAT(orderSamples(lengths, SampleOrder::Length),
              ElementsAre(1, 3, 4, 2, 0));
}

/// On a line sorting is the best way, and no step can be shorter than a gap.
TEST(OrderSamplesTest, OneKeyIsSorted) {
  Lengths lengths = {{5, 2}, {3, 2}, {90, 2}, {3, 2}, {40, 2}};
  for (SampleOrder order : {SampleOrder::Length, SampleOrder::ShortestWay,
                            SampleOrder::ShortestStep})
    EXPECT_THAT(orderSamples(lengths, order), ElementsAre(1, 3, 0, 4, 2));
  for (SampleOrder order :
       {SampleOrder::ShortestWay, SampleOrder::ShortestStep})
    EXPECT_TRUE(orderSamples({}, order).empty());
}

/// Up and down between two rows is what the order by both keys does.
TEST(OrderSamplesTest, TheSalesmanStaysInARow) {
  Lengths lengths;
  for (int64_t x = 0; x < 40; ++x)
    for (int64_t y : {0, 1000})
      lengths.push_back({10 * x, y});
  EXPECT_EQ(walk(lengths, orderSamples(lengths, SampleOrder::Length)).way,
            40 * 1000 + 39 * 1010);
  // There, up once and back.
  EXPECT_EQ(walk(lengths, orderSamples(lengths, SampleOrder::ShortestWay)).way,
            2 * 390 + 1000);
}

TEST(OrderSamplesTest, EqualSamplesStandTogether) {
  Lengths lengths = draw(9, 400, 12, 12);
  for (SampleOrder order :
       {SampleOrder::ShortestWay, SampleOrder::ShortestStep}) {
    std::vector<int64_t> visited = orderSamples(lengths, order);
    ASSERT_TRUE(isPermutation(visited, lengths.size()));
    std::vector<SampleLength> left;
    for (size_t i = 0; i < visited.size(); ++i) {
      if (i > 0 && lengths[visited[i]] == lengths[visited[i - 1]]) {
        EXPECT_LT(visited[i - 1], visited[i]);
        continue;
      }
      EXPECT_EQ(std::count(left.begin(), left.end(), lengths[visited[i]]), 0);
      left.push_back(lengths[visited[i]]);
    }
  }
}

TEST(OrderSamplesTest, NearTheBestOfAllOrders) {
  int64_t ways = 0, bestWays = 0, steps = 0, bestSteps = 0;
  int shortest = 0, rounds = 600;
  for (int round = 0; round < rounds; ++round) {
    Lengths lengths = draw(100 + round, 2 + round % 7, 60, 30);
    std::vector<int64_t> order(lengths.size());
    std::iota(order.begin(), order.end(), 0);
    Walk best{INT64_MAX, INT64_MAX};
    do {
      Walk one = walk(lengths, order);
      best.way = std::min(best.way, one.way);
      best.step = std::min(best.step, one.step);
    } while (std::next_permutation(order.begin(), order.end()));
    Walk way = walk(lengths, orderSamples(lengths, SampleOrder::ShortestWay));
    Walk step = walk(lengths, orderSamples(lengths, SampleOrder::ShortestStep));
    EXPECT_GE(way.way, best.way);
    shortest += way.way == best.way;
    ways += way.way, bestWays += best.way;
    steps += step.step, bestSteps += best.step;
  }
  EXPECT_GE(shortest, rounds * 985 / 1000);
  EXPECT_LE(static_cast<double>(ways), 1.001 * static_cast<double>(bestWays));
  EXPECT_LE(static_cast<double>(steps), 1.002 * static_cast<double>(bestSteps));
}

TEST(OrderSamplesTest, NeverWorseThanSortingAndDeterministic) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    Lengths lengths = draw(seed, seed < 10 ? 50 : 1500, 2000, 1 + 60 * seed);
    Walk sorted = walk(lengths, orderSamples(lengths, SampleOrder::Length));
    std::vector<int64_t> way = orderSamples(lengths, SampleOrder::ShortestWay);
    std::vector<int64_t> step =
        orderSamples(lengths, SampleOrder::ShortestStep);
    ASSERT_TRUE(isPermutation(way, lengths.size()));
    ASSERT_TRUE(isPermutation(step, lengths.size()));
    EXPECT_LE(walk(lengths, way).way, sorted.way);
    EXPECT_LE(walk(lengths, step).step, sorted.step);
    EXPECT_EQ(way, orderSamples(lengths, SampleOrder::ShortestWay));
    EXPECT_EQ(step, orderSamples(lengths, SampleOrder::ShortestStep));
  }
}

/// Points of a grid, row after row in both directions, are one step apart.
TEST(OrderSamplesTest, AGridIsWalkedInSmallSteps) {
  Lengths lengths;
  for (int64_t x = 0; x < 32; ++x)
    for (int64_t y = 0; y < 32; ++y)
      lengths.push_back({100 + x, y});
  EXPECT_EQ(
      walk(lengths, orderSamples(lengths, SampleOrder::ShortestStep)).step, 1);
  EXPECT_EQ(walk(lengths, orderSamples(lengths, SampleOrder::ShortestWay)).way,
            1023);
}

/// Of many points in a square no way is expected below 0.92 sqrt(points * area)
/// (the 0.71 of straight distances, times 4 / pi).
TEST(OrderSamplesTest, TheWayThroughManyPointsIsShort) {
  Lengths lengths = draw(77, 1500, 4096, 4096);
  double unit = std::sqrt(1500.0) * 4096;
  Walk way = walk(lengths, orderSamples(lengths, SampleOrder::ShortestWay));
  EXPECT_LE(static_cast<double>(way.way) / unit, 1.02);
  Walk step = walk(lengths, orderSamples(lengths, SampleOrder::ShortestStep));
  EXPECT_LE(static_cast<double>(step.step) / 4096, 0.1);
}

} // namespace
