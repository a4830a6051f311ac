//===- PlaceBlocksTest.cpp - Offline allocation ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/place/PlaceBlocks.h"
#include "runtime/abi/Random.h"
#include "runtime/planner/place/AssignMemory.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

using namespace dyna;

namespace {

void expectNoOverlap(const std::vector<BlockLifetime> &blocks,
                     const BlockPlacement &placement) {
  for (size_t a = 0; a < blocks.size(); ++a) {
    EXPECT_LE(placement.offsets[a] + blocks[a].bytes, placement.peak);
    for (size_t b = 0; b < a; ++b) {
      bool together = blocks[a].first <= blocks[b].last &&
                      blocks[b].first <= blocks[a].last;
      bool apart =
          placement.offsets[a] + blocks[a].bytes <= placement.offsets[b] ||
          placement.offsets[b] + blocks[b].bytes <= placement.offsets[a];
      EXPECT_TRUE(!together || apart);
    }
  }
}

/// The optimum: in some order, every block lies as low as it can.
int64_t lowestPeak(const std::vector<BlockLifetime> &blocks) {
  std::vector<size_t> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  int64_t best = INT64_MAX;
  do {
    std::vector<int64_t> offsets(blocks.size(), -1);
    int64_t peak = 0;
    for (size_t b : order) {
      int64_t at = 0;
      for (bool moved = true; moved;) {
        moved = false;
        for (size_t other = 0; other < blocks.size(); ++other)
          if (offsets[other] >= 0 && blocks[other].first <= blocks[b].last &&
              blocks[b].first <= blocks[other].last &&
              at < offsets[other] + blocks[other].bytes &&
              offsets[other] < at + blocks[b].bytes) {
            at = offsets[other] + blocks[other].bytes;
            moved = true;
          }
      }
      offsets[b] = at;
      peak = std::max(peak, at + blocks[b].bytes);
    }
    best = std::min(best, peak);
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

TEST(PlaceBlocksTest, NearTheOptimumOnSmallInputs) {
  uint64_t counter = 0;
  auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
  int optimal = 0;
  constexpr int rounds = 400;
  for (int round = 0; round < rounds; ++round) {
    std::vector<BlockLifetime> blocks(1 + random(6));
    for (BlockLifetime &block : blocks) {
      block.bytes = 64 * static_cast<int64_t>(1 + random(10));
      block.first = static_cast<int>(random(8));
      block.last = block.first + static_cast<int>(random(5));
    }
    BlockPlacement placement = placeBlocks(blocks);
    expectNoOverlap(blocks, placement);
    int64_t best = lowestPeak(blocks);
    EXPECT_LE(placement.lowerBound, best);
    EXPECT_GE(placement.peak, best);
    EXPECT_LE(placement.peak, best * 3 / 2);
    optimal += placement.peak == best;
  }
  EXPECT_GE(optimal, rounds * 95 / 100);
}

// What is found by its time is what looking at everything finds: of long programs
// the offsets are those of the same three orders, place by place.
TEST(PlaceBlocksTest, LongProgramsLieAsLowAsTheyCan) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    uint64_t counter = seed << 32;
    auto random = [&](uint64_t below) { return dyna_mix64(++counter) % below; };
    std::vector<BlockLifetime> blocks(600);
    for (BlockLifetime &block : blocks) {
      block.bytes = 64 * static_cast<int64_t>(1 + random(10));
      block.first = static_cast<int>(random(1000));
      block.last =
          block.first + static_cast<int>(random(3) ? random(6) : random(400));
    }
    blocks[0] = {64, 0, 1500}; // they hang together: one order for all
    BlockPlacement placement = placeBlocks(blocks);
    expectNoOverlap(blocks, placement);
    int64_t best = INT64_MAX;
    std::vector<size_t> order(blocks.size());
    std::iota(order.begin(), order.end(), 0);
    auto lowest = [&](auto less) {
      std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
        return std::pair(less(blocks[a]), a) < std::pair(less(blocks[b]), b);
      });
      std::vector<int64_t> offsets(blocks.size(), -1);
      int64_t peak = 0;
      for (size_t b : order) {
        std::vector<std::pair<int64_t, int64_t>> taken;
        for (size_t other = 0; other < blocks.size(); ++other)
          if (offsets[other] >= 0 && blocks[other].first <= blocks[b].last &&
              blocks[b].first <= blocks[other].last)
            taken.push_back(
                {offsets[other], offsets[other] + blocks[other].bytes});
        std::sort(taken.begin(), taken.end());
        int64_t at = 0;
        for (auto [begin, end] : taken)
          if (begin < at + blocks[b].bytes)
            at = std::max(at, end);
          else
            break;
        offsets[b] = at;
        peak = std::max(peak, at + blocks[b].bytes);
      }
      if (peak < best && peak == placement.peak)
        EXPECT_EQ(placement.offsets, offsets);
      best = std::min(best, peak);
      EXPECT_GE(peak, placement.peak);
    };
    lowest([](const BlockLifetime &b) {
      return std::pair(b.first - b.last, b.first);
    });
    lowest([](const BlockLifetime &b) { return std::pair(-b.bytes, 0); });
    lowest([](const BlockLifetime &b) { return std::pair(b.first, 0); });
    EXPECT_EQ(placement.peak, best);
  }
}

/// Returns the lowest free offset of one block, among those that have theirs.
int64_t lowestAmongAll(const std::vector<BlockLifetime> &blocks,
                       const std::vector<int64_t> &offsets, int one) {
  const BlockLifetime &block = blocks[one];
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (size_t other = 0; other < blocks.size(); ++other)
    if (offsets[other] >= 0 && blocks[other].bytes > 0 &&
        blocks[other].first <= block.last && block.first <= blocks[other].last)
      taken.push_back({offsets[other], offsets[other] + blocks[other].bytes});
  std::sort(taken.begin(), taken.end());
  int64_t at = 0;
  for (auto [begin, end] : taken)
    if (block.bytes > 0 && begin < at + block.bytes)
      at = std::max(at, end);
  return at;
}

// In any order, and of any mixture of short and long lives: windows, nodes above them and
// cursors find what a look at all blocks finds. A limit ends the search.
TEST(PlaceLowestTest, EqualsALookAtAllBlocks) {
  for (uint64_t seed = 0; seed < 1500; ++seed) {
    SCOPED_TRACE(seed);
    uint64_t counter = seed << 32;
    auto random = [&](int64_t below) {
      return static_cast<int>(dyna_mix64(++counter) % below);
    };
    // Few blocks have one window, and many have up to 16.
    const int many = seed % 100 == 0 ? 20 : 1;
    const int times = 1 + random(40 * many), longest = 1 + random(times),
              begin = random(3) * 1000;
    std::vector<BlockLifetime> blocks(1 + random(60 * many));
    std::vector<int> order(blocks.size());
    for (size_t b = 0; b < blocks.size(); ++b) {
      const int first = begin + random(times);
      const int life = random(3) ? random(3) : random(longest);
      blocks[b] = {64 * random(9), first,
                   std::min(first + life, begin + times)};
      order[b] = static_cast<int>(b);
    }
    for (size_t i = order.size(); i > 1; --i)
      std::swap(order[i - 1], order[random(static_cast<int>(i))]);
    std::vector<int64_t> expected(blocks.size(), -1), offsets(blocks.size());
    std::vector<int64_t> peaks = {0};
    for (int b : order) {
      expected[b] = lowestAmongAll(blocks, expected, b);
      peaks.push_back(std::max(peaks.back(), expected[b] + blocks[b].bytes));
    }
    EXPECT_EQ(placeLowest(blocks, order, offsets), peaks.back());
    EXPECT_EQ(offsets, expected);
    const int64_t limit = peaks[random(static_cast<int>(peaks.size()))];
    const auto reached =
        std::lower_bound(peaks.begin(), peaks.end(), limit) - peaks.begin();
    std::vector<int64_t> some(blocks.size(), -1);
    EXPECT_EQ(placeLowest(blocks, order, some, limit), limit);
    for (size_t i = 0; i < order.size(); ++i)
      EXPECT_EQ(some[order[i]] >= 0, static_cast<long>(i) < reached);
  }
}

TEST(PlaceBlocksTest, StacksReachTheLowerBound) {
  // Kept blocks of ten layers, and a brief one at every step.
  std::vector<BlockLifetime> blocks;
  for (int l = 0; l < 10; ++l) {
    blocks.push_back({640 + 64 * l, l, 20 - l});
    blocks.push_back({1280, l, l});
    blocks.push_back({2560, 20 - l, 20 - l});
  }
  BlockPlacement placement = placeBlocks(blocks);
  expectNoOverlap(blocks, placement);
  EXPECT_EQ(placement.peak, placement.lowerBound);
}

TEST(PlaceBlocksTest, UnconnectedGroupsShareTheMemory) {
  BlockPlacement placement =
      placeBlocks({{640, 0, 3}, {64, 2, 4}, {704, 5, 9}, {64, 10, 10}});
  EXPECT_EQ(placement.peak, 704);
  EXPECT_EQ(placement.offsets[2], 0);
  EXPECT_EQ(placeBlocks({}).peak, 0);
}

// Ranks of a tensor group share places only if they run the same instructions.
TEST(PlaceBlocksTest, PlacesAreCopiedBetweenEqualPrograms) {
  plan::RankProgram placed;
  placed.instructions.resize(2);
  placed.instructions[0].op = plan::Instruction::LOAD;
  placed.instructions[0].places = {64, 128, plan::noPlace};
  placed.instructions[1].op = plan::Instruction::FORWARD;
  placed.dynamicBytes = 512;
  plan::RankProgram equal = placed;
  equal.instructions[0].places.fill(plan::noPlace);
  equal.dynamicBytes = 0;
  plan::RankProgram other = equal, shorter = equal;
  EXPECT_TRUE(copyPlaces(placed, equal));
  EXPECT_EQ(equal.instructions, placed.instructions);
  EXPECT_EQ(equal.dynamicBytes, 512);
  other.instructions[1].layer = 1;
  shorter.instructions.pop_back();
  for (plan::RankProgram *unlike : {&other, &shorter}) {
    EXPECT_FALSE(copyPlaces(placed, *unlike));
    EXPECT_EQ(unlike->instructions[0].places[0], plan::noPlace);
    EXPECT_EQ(unlike->dynamicBytes, 0);
  }
}

} // namespace
