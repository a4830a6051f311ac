//===- ProfileGridTest.cpp - What is measured, and what it comes to -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/profile/ProfileGrid.h"

#include "runtime/cost/CostText.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <set>

using namespace dyna;

namespace {

const CostKey function{"block", 2, true, cost::BACKWARD};

TEST(ProfileGridTest, GridsAreInPowersOfTwoUpToTheLargest) {
  std::vector<ProfileShape> grid = profileGrid(100, 40);
  std::set<std::pair<int64_t, int64_t>> longest;
  int fewTargets = 0;
  for (size_t i = 0; i < grid.size(); ++i) {
    const ProfileShape &shape = grid[i];
    int64_t most =
        *std::max_element(shape.lengths.begin(), shape.lengths.end());
    longest.insert({shape.tokens(), most});
    EXPECT_LE(most, 40);
    EXPECT_GE(*std::min_element(shape.lengths.begin(), shape.lengths.end()), 1);
    EXPECT_TRUE(i == 0 || grid[i - 1].tokens() <= shape.tokens());
    fewTargets += shape.targets() < shape.tokens();
    if (shape.targetShare == 100)
      EXPECT_EQ(shape.targets(), shape.tokens());
  }
  // Whole ones in powers of two; in shorter samples odd numbers between them.
  EXPECT_EQ(longest, (std::set<std::pair<int64_t, int64_t>>{{1, 1},
                                                            {2, 2},
                                                            {4, 4},
                                                            {8, 8},
                                                            {16, 16},
                                                            {31, 8},
                                                            {32, 32},
                                                            {49, 10},
                                                            {57, 10},
                                                            {64, 40},
                                                            {100, 40}}));
  EXPECT_EQ(fewTargets, 5); // one for each size
}

TEST(ProfileGridTest, ShortSamplesAreInMicroBatchesOfOddSizes) {
  for (int64_t most : {64, 700, 2048, 5000}) {
    std::set<int64_t> odd;
    for (const ProfileShape &shape : profileGrid(most, 2048)) {
      const int64_t tokens = shape.tokens();
      EXPECT_LE(tokens, most);
      if (tokens == most || (tokens & (tokens - 1)) == 0)
        continue;
      EXPECT_EQ(tokens % 2, 1) << tokens;
      odd.insert(tokens);
    }
    // Spread over the range: more than one between two powers of two.
    EXPECT_GE(odd.size(), most == 64 ? 2u : 8u) << most;
    if (most == 5000)
      EXPECT_GE(std::distance(odd.lower_bound(1024), odd.upper_bound(2048)), 3);
  }
}

TEST(ProfileGridTest, EvenTheSmallestMicroBatchIsMeasured) {
  for (int64_t most : {1, 2, 7, 8, 9}) {
    std::vector<ProfileShape> grid = profileGrid(most, 1);
    ASSERT_FALSE(grid.empty());
    EXPECT_EQ(grid.back().tokens(), most);
    for (const ProfileShape &shape : grid) {
      EXPECT_GT(shape.targets(), 0);
      EXPECT_EQ(shape.lengths, std::vector<int64_t>(shape.tokens(), 1));
    }
  }
}

TEST(ProfileGridTest, RandomShapesFillTheRange) {
  std::vector<ProfileShape> shapes = randomShapes(300, 4096, 512, 7);
  int small = 0, large = 0, off = 0;
  for (const ProfileShape &shape : shapes) {
    ASSERT_GE(shape.tokens(), shortestProfiled);
    ASSERT_LE(shape.tokens(), 4096);
    for (int64_t length : shape.lengths) {
      ASSERT_GE(length, 1);
      ASSERT_LE(length, 512);
    }
    small += shape.tokens() < 64;
    large += shape.tokens() > 1024;
    off += (shape.tokens() & (shape.tokens() - 1)) != 0;
  }
  EXPECT_GT(small, 60);
  EXPECT_GT(large, 40);
  EXPECT_GT(off, 200);
  EXPECT_EQ(shapes[5].lengths, randomShapes(300, 4096, 512, 7)[5].lengths);
  EXPECT_NE(shapes[5].lengths, randomShapes(300, 4096, 512, 8)[5].lengths);
  // Limits below what is asked for elsewhere.
  for (const ProfileShape &shape : randomShapes(20, 3, 2, 1))
    EXPECT_LE(shape.tokens(), 3);
}

int64_t sumOf(const std::vector<int64_t> &slices) {
  int64_t sum = 0;
  for (int64_t slice : slices)
    sum += slice;
  return sum;
}

TEST(ProfileGridTest, SlicesOfAllSizesFollowAllContexts) {
  // One sample after another: 16 tokens, then what follows them.
  const std::vector<ProfileShape> small = contextGrid(200, 130);
  ASSERT_EQ(small.size(), 2u);
  EXPECT_EQ(small[0].slices, (std::vector<int64_t>{16, 1, 8, 7}));
  EXPECT_EQ(small[1].slices,
            (std::vector<int64_t>{16, 1, 8, 7, 1, 8, 23, 1, 8, 32, 23, 1, 1}));
  for (int64_t most : {32, 100, 4096, 5000}) {
    const std::vector<ProfileShape> grid = contextGrid(most, 0);
    EXPECT_EQ(grid.back().tokens(), most);
    int64_t before = 0;
    for (const ProfileShape &shape : grid) {
      EXPECT_EQ(shape.lengths.size(), 1u);
      EXPECT_EQ(sumOf(shape.slices), shape.tokens());
      EXPECT_GT(shape.tokens(), before);
      before = shape.tokens();
      for (int64_t slice : shape.slices)
        EXPECT_GE(slice, 1);
      // Few calls for each sample.
      EXPECT_LE(shape.slices.size(), 50u);
    }
  }
  std::map<int64_t, std::set<int64_t>> contexts; // by tokens
  int64_t at = 0;
  const ProfileShape longest = contextGrid(4096, 0).back();
  for (int64_t slice : longest.slices) {
    contexts[slice].insert(at);
    at += slice;
  }
  for (int64_t size : {1, 8, 32, 128, 512}) {
    EXPECT_GE(contexts[size].size(), 2u) << size;
    EXPECT_GE(*contexts[size].rbegin(), 2048) << size;
  }
  // Samples too short for slices have none.
  EXPECT_TRUE(contextGrid(31, 0).empty());
  EXPECT_TRUE(contextGrid(4096, 31).empty());
}

TEST(ProfileGridTest, RandomSlicesCoverTheirSample) {
  const std::vector<ProfileShape> shapes = randomSlices(100, 4096, 512, 7);
  ASSERT_EQ(shapes.size(), 100u);
  int several = 0;
  for (const ProfileShape &shape : shapes) {
    EXPECT_TRUE(shape.isHeldOut);
    ASSERT_EQ(shape.lengths.size(), 1u);
    EXPECT_GE(shape.tokens(), shortestSliced);
    EXPECT_LE(shape.tokens(), 512);
    EXPECT_EQ(sumOf(shape.slices), shape.tokens());
    several += shape.slices.size() > 1;
  }
  EXPECT_GT(several, 60);
  EXPECT_EQ(shapes[5].slices, randomSlices(100, 4096, 512, 7)[5].slices);
  EXPECT_NE(shapes[5].slices, randomSlices(100, 4096, 512, 8)[5].slices);
  EXPECT_TRUE(randomSlices(10, 31, 0, 1).empty());
}

TEST(ProfileGridTest, SlicesAreMeasuredApartFromWholeSamples) {
  Measurements times;
  times.add(function, callLoad(4, 42, 0), {1, 1}, false);
  times.add(function, sliceLoad(4, 8), {3, 3}, false);
  times.add(function, sliceLoad(4, 8), {5, 5}, false);
  const std::vector<Measurements::Typical> typical = times.typical();
  ASSERT_EQ(typical.size(), 2u);
  EXPECT_EQ(typical[0].load, callLoad(4, 42, 0));
  EXPECT_EQ(typical[1].load, sliceLoad(4, 8));
  const cost::Table table = times.table();
  ASSERT_EQ(table.entries_size(), 1);
  ASSERT_EQ(table.entries(0).points_size(), 2);
  EXPECT_EQ(table.entries(0).points(0).context(), 0);
  EXPECT_EQ(table.entries(0).points(1).context(), 8);
  EXPECT_EQ(table.entries(0).points(1).seconds(), 4);
}

TEST(ProfileGridTest, TypicalTimesAreThoseThatLieTogether) {
  EXPECT_EQ(typicalSeconds({3}), 3);
  EXPECT_EQ(typicalSeconds({4, 2}), 3);
  EXPECT_EQ(typicalSeconds({90, 4, 5}), 4.5); // one was disturbed
  // Four of nine were, and the plain median is what the last of the others took.
  EXPECT_EQ(typicalSeconds({10, 30, 11, 20, 9, 10, 50, 10, 80}), 10);
  // Of equal distances those of the shorter times.
  EXPECT_EQ(typicalSeconds({1, 2, 3, 4}), 2);
  // Whatever is added to less than half of them, by much or little.
  for (int disturbed = 0; disturbed <= 4; ++disturbed)
    for (double more : {0.5, 3.0, 1000.0}) {
      std::vector<double> times = {1, 1.01, 0.99, 1, 1.02, 0.98, 1, 1.01, 1};
      for (int i = 0; i < disturbed; ++i)
        times[2 * i] += more * (i + 1);
      EXPECT_NEAR(typicalSeconds(times), 1, 0.01) << disturbed << " " << more;
    }
}

// A clock that counts what others of the machine took, and one that does not.
TEST(ProfileGridTest, OtherWorkIsToldFromTheCallsOwn) {
  Measurements times;
  const CostKey sums{"block", 2, true, cost::FORWARD};
  for (double others : {0.0, 3.0, 0.5, 8.0, 0.5}) {
    times.add(function, callLoad(64, 100, 0), {2 + others, 2}, false);
    // Waiting for another rank is no work of this one, but takes its time.
    times.add(sums, callLoad(64, 100, 0), {3, 1}, true);
  }
  const auto typical = times.typical();
  ASSERT_EQ(typical.size(), 2u);
  EXPECT_EQ(typical[0].function.direction, cost::FORWARD);
  EXPECT_EQ(typical[0].seconds, 3);
  EXPECT_EQ(typical[1].seconds, 2);
  EXPECT_DOUBLE_EQ(times.noise().withheld, 12.0 / 22);
  EXPECT_EQ(times.noise().spread, 0);
  EXPECT_TRUE(times.noise().isTooMuch());
  EXPECT_EQ(
      times.noise().describe(),
      "ranks had no core for 54.5 % of the time, repeats of a call differ "
      "by 0.0 %");
}

TEST(ProfileGridTest, RepeatsSayHowQuietTheMachineWas) {
  auto noiseOf = [](const std::vector<double> &seconds) {
    Measurements times;
    for (double one : seconds) {
      times.add(function, callLoad(64, 100, 0), {one, one}, false);
      // Single calls, and short ones, tell nothing.
      times.add(function, callLoad(8, 8, 0), {one * 1e-6, one * 1e-6}, false);
    }
    times.add(function, callLoad(32, 50, 0), {1, 1}, false);
    return times.noise();
  };
  EXPECT_NEAR(noiseOf({1, 1, 1, 1.2}).spread, 0.05, 1e-12);
  EXPECT_FALSE(noiseOf({1, 1, 1, 1.2}).isTooMuch());
  EXPECT_NEAR(noiseOf({1, 2, 1, 3}).spread, 0.5, 1e-12);
  EXPECT_TRUE(noiseOf({1, 2, 1, 3}).isTooMuch());
  EXPECT_EQ(noiseOf({}).spread, 0);
  EXPECT_EQ(noiseOf({1, 1}).withheld, 0);
  EXPECT_EQ(Measurements().noise().withheld, 0);
}

TEST(ProfileGridTest, TypicalTimesBecomeEntries) {
  Measurements times;
  EXPECT_TRUE(times.empty());
  for (double seconds : {5.0, 6.0, 90.0}) // one was disturbed
    times.add(function, callLoad(64, 100, 0), {seconds, seconds}, false);
  for (double seconds : {4.0, 2.0})
    times.add(function, callLoad(32, 50, 0), {seconds, seconds}, false);
  times.add({"head", 1, false, cost::FORWARD}, callLoad(32, 0, 8), {0.5, 0.5},
            false);
  cost::Table table = times.table();
  ASSERT_EQ(table.entries_size(), 2);
  const cost::Entry &entry = table.entries(0);
  EXPECT_EQ(entry.kind(), "block");
  EXPECT_EQ(entry.tp(), 2);
  EXPECT_TRUE(entry.sp());
  EXPECT_EQ(entry.direction(), cost::BACKWARD);
  ASSERT_EQ(entry.points_size(), 2);
  EXPECT_EQ(entry.points(0).tokens(), 32);
  EXPECT_EQ(entry.points(0).seconds(), 3);
  EXPECT_EQ(entry.points(1).seconds(), 6);
  EXPECT_EQ(table.entries(1).points(0).targets(), 8);
  auto read = CostTable::parse(writeCosts(table, {}), "profile");
  ASSERT_TRUE(read.isOk()) << read.status().message();
  EXPECT_EQ(read->curves().at(function).seconds(callLoad(32, 50, 0)), 3);
}

// On the wall most repeats may be disturbed; of a core's time the median counts.
TEST(ProfileGridTest, WhatIsTypicalDependsOnTheClock) {
  const std::vector<double> seconds = {10, 30, 11, 20, 9, 10, 50, 10, 80};
  EXPECT_EQ(medianSeconds(seconds), 11);
  EXPECT_EQ(medianSeconds({4, 1}), 2.5);
  for (bool waits : {false, true}) {
    Measurements times;
    for (double one : seconds)
      times.add(function, callLoad(64, 100, 0), {one, one}, waits);
    EXPECT_EQ(times.typical()[0].seconds, waits ? 10 : 11);
  }
}

// A GPU does its work while the thread that gave it does something else.
TEST(ProfileGridTest, DevicesHaveTimesOfTheirOwn) {
  Measurements times;
  for (double one : {2.0, 4.0, 3.0})
    times.add(function, callLoad(64, 100, 0), {one, -1}, false);
  EXPECT_EQ(times.typical()[0].seconds, 3);
  EXPECT_EQ(times.noise().withheld, -1);
  EXPECT_FALSE((MachineNoise{-1, 0.05}.isTooMuch()));
  EXPECT_TRUE((MachineNoise{-1, 0.2}.isTooMuch()));
  EXPECT_EQ(times.noise().describe(), "repeats of a call differ by 22.2 %");
}

/// A device on which each token takes a second.
struct FakeRun {
  double now = 0;
  double limit;
  std::vector<std::pair<int, int64_t>> ran; ///< pass, tokens

  StatusOr<ProfilePasses> run(const std::vector<ProfileShape> &shapes,
                              int passes) {
    return runProfile(
        shapes, 0, passes, [&] { return StatusOr<bool>(now >= limit); },
        [&](const ProfileShape &shape, int pass) {
          ran.push_back({pass, shape.tokens()});
          now += static_cast<double>(shape.tokens());
          return Status::ok();
        });
  }
};

TEST(ProfileGridTest, PassesFollowEachOtherUntilTimeIsUp) {
  const std::vector<ProfileShape> shapes = {{{1}}, {{2}}, {{3}}};
  FakeRun all{0, 100, {}};
  auto done = all.run(shapes, 2);
  ASSERT_TRUE(done.isOk());
  EXPECT_EQ(done->passes, 2);
  EXPECT_EQ(done->reached, 0u);
  EXPECT_EQ(all.ran, (std::vector<std::pair<int, int64_t>>{
                         {0, 1}, {0, 2}, {0, 3}, {1, 2}, {1, 3}, {1, 1}}));
  FakeRun cut{0, 8, {}}; // over after the first of the second pass
  done = cut.run(shapes, 9);
  EXPECT_EQ(done->passes, 1);
  EXPECT_EQ(done->reached, 1u);
  EXPECT_EQ(cut.now, 8);
  FakeRun late{10, 0, {}}; // one point there always is
  done = late.run(shapes, 9);
  EXPECT_EQ(done->passes, 0);
  EXPECT_EQ(done->reached, 1u);
  EXPECT_EQ(late.ran.size(), 1u);
}

TEST(ProfileGridTest, SmallShapesAreRunMoreOften) {
  int before = 100;
  for (int64_t tokens : {1, 8, 256, 257, 512, 1024, 1 << 20}) {
    const int repeats = repeatsOf({{tokens}});
    EXPECT_LE(repeats, before);
    EXPECT_EQ(repeats == 1, tokens > 512) << tokens;
    before = repeats;
  }
  ProfileShape off{{4096}};
  off.isHeldOut = true;
  EXPECT_EQ(repeatsOf(off), 2);
}

TEST(ProfileGridTest, PassesHaveOrdersOfTheirOwn) {
  for (size_t shapes : {1, 2, 7, 16, 48, 100}) {
    std::set<std::vector<size_t>> orders;
    for (int pass = 0; pass < 4; ++pass) {
      std::vector<size_t> order = passOrder(shapes, pass);
      EXPECT_EQ(std::is_sorted(order.begin(), order.end()),
                pass == 0 || shapes < 3)
          << shapes << " " << pass;
      orders.insert(order);
      std::sort(order.begin(), order.end());
      for (size_t i = 0; i < shapes; ++i)
        ASSERT_EQ(order[i], i); // each once
    }
    if (shapes > 3)
      EXPECT_EQ(orders.size(), 4u);
  }
}

TEST(ProfileGridTest, FailuresEndIt) {
  int runs = 0;
  auto done = runProfile(
      {{{1}}, {{2}}}, 0, 3, [] { return StatusOr<bool>(false); },
      [&](const ProfileShape &, int) {
        return ++runs == 2 ? Status::internal("broken") : Status::ok();
      });
  EXPECT_EQ(done.status().message(), "broken");
  EXPECT_EQ(runs, 2);
}

} // namespace
