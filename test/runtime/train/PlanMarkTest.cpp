//===- PlanMarkTest.cpp - Where executors stand, for planners -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanMark.h"
#include "runtime/abi/Random.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

using namespace dyna;

namespace {

DataCursor cursorOf(int64_t step) {
  DataCursor cursor;
  cursor.samples = 10 * step;
  return cursor;
}

// Of two threads the second may come first: a mark behind the run's first step
// would leave its plan to nobody.
TEST(PlanMarkTest, ThreadsThatOvertakeEachOtherLeaveNoStepBehind) {
  for (int64_t first : {0, 7}) {
    RunPlace place(1, 2);
    place.startAt(first);
    EXPECT_FALSE(place.want(first + 1, cursorOf(first + 1)));
    EXPECT_FALSE(place.isMarked());
    EXPECT_TRUE(place.want(first, cursorOf(first)));
    EXPECT_EQ(place.mark().step, first);
    EXPECT_EQ(place.mark().cursor.samples, 10 * first);
    // The one so far before it has been taken.
    EXPECT_TRUE(place.want(first + 3, cursorOf(first + 3)));
    EXPECT_EQ(place.mark().step, first + 1);
  }
}

// Threads ask for steps in any order that a queue of so many places allows.
// A planner that begins at the mark when it sees one, and follows it, plans all.
TEST(PlanMarkTest, PlannersThatFollowPlanEveryStep) {
  constexpr int64_t steps = 24;
  for (uint64_t seed = 0; seed < 400; ++seed) {
    const int64_t ahead = 1 + static_cast<int64_t>(seed % 4);
    const int64_t first = seed % 3 == 0 ? 5 : 0, end = first + steps;
    RunPlace place(1, ahead);
    place.startAt(first);
    std::vector<bool> wanted(end, false), planned(end, false);
    int64_t taken = first, next = -1, draws = 0;
    while (taken < end) {
      ASSERT_LT(++draws, 100000) << "seed " << seed << " stands at " << taken;
      const uint64_t draw =
          dyna_mix64(seed * 1000003 + static_cast<uint64_t>(draws));
      // What waits is at most so many behind those that were taken.
      const int64_t step = taken + static_cast<int64_t>(draw % ahead);
      if (step < end && !wanted[step]) {
        wanted[step] = true;
        const int64_t before = place.mark().step;
        if (place.want(step, cursorOf(step)) && place.mark().step > first)
          EXPECT_GT(place.mark().step, before);
      }
      if (place.isMarked()) {
        EXPECT_LE(place.mark().step, taken) << seed;
        EXPECT_EQ(place.mark().cursor.samples, 10 * place.mark().step);
        next = std::max(next, place.mark().step);
        while (next < end && next <= place.mark().step + ahead)
          planned[next++] = true;
      }
      while (taken < end && wanted[taken] && planned[taken])
        ++taken;
    }
  }
}

// What another run left at the same step, rank and prefix is found only if it is
// the same plan: it is made from the lengths, in their order, and the targets.
TEST(PlanMarkTest, KeysTellMiniBatchesOfOtherLengthsApart) {
  auto stepOf = [](const std::vector<int64_t> &lengths, int64_t targets,
                   int32_t token = 7) {
    PlannedStep step;
    step.step = 3;
    step.batch.targets = targets;
    for (int64_t length : lengths) {
      Sample &sample = step.batch.samples.emplace_back();
      sample.tokens.assign(length, token);
      sample.targets = sample.tokens;
      step.batch.tokens += length;
    }
    return step;
  };
  const PlannedStep step = stepOf({5, 12}, 10);
  const std::string key = planKey("dyna:1", step, 2);
  EXPECT_EQ(planKey("dyna:1", stepOf({5, 12}, 10, 9), 2), key);
  std::vector<std::string> keys = {
      key, planKey("dyna:1", stepOf({5, 12}, 9), 2), planKey("dyna:1", step, 1),
      planKey("dyna:2", step, 2)};
  for (const std::vector<int64_t> &lengths : std::vector<std::vector<int64_t>>{
           {12, 5}, {6, 11}, {17}, {5, 6, 6}, {5, 1, 2}, {51, 2}})
    keys.push_back(planKey("dyna:1", stepOf(lengths, 10), 2));
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

} // namespace
