//===- PruningScheduleTest.cpp - When weights are pruned ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/PruningSchedule.h"

#include <gtest/gtest.h>

using namespace dyna;

namespace {

PruningSchedule scheduleOf(const std::string &text) {
  auto schedule = parsePruningSchedule(text);
  EXPECT_TRUE(schedule.isOk()) << schedule.status().message();
  return schedule.isOk() ? *schedule : PruningSchedule();
}

std::string refusalOf(const std::string &text) {
  auto schedule = parsePruningSchedule(text);
  EXPECT_FALSE(schedule.isOk()) << text;
  return schedule.isOk() ? "" : schedule.status().message();
}

// Equation 2 at 3000, 4000, ..., 7000. The last event has the final sparsity; the
// script of the paper's authors stops one short of it.
TEST(PruningScheduleTest, RisesByTheCubeOfWhatIsLeft) {
  const PruningSchedule schedule =
      scheduleOf("final=0.9,from=3000,until=7000,every=1000");
  EXPECT_EQ(schedule.events(), 5);
  EXPECT_EQ(schedule.sparsityAt(2999), 0);
  EXPECT_DOUBLE_EQ(schedule.sparsityAt(3000), 0);
  EXPECT_DOUBLE_EQ(schedule.sparsityAt(4000), 0.9 * (1 - 27.0 / 64));
  EXPECT_DOUBLE_EQ(schedule.sparsityAt(4999), 0.9 * (1 - 27.0 / 64));
  EXPECT_DOUBLE_EQ(schedule.sparsityAt(5000), 0.9 * (1 - 1.0 / 8));
  EXPECT_DOUBLE_EQ(schedule.sparsityAt(6000), 0.9 * (1 - 1.0 / 64));
  EXPECT_EQ(schedule.sparsityAt(7000), 0.9);
  EXPECT_EQ(schedule.sparsityAt(100000), 0.9);
  int events = 0;
  for (int64_t step = 0; step < 10000; ++step)
    events += schedule.hasEvent(step);
  EXPECT_EQ(events, 5);
  EXPECT_TRUE(schedule.hasEvent(3000) && schedule.hasEvent(7000));
  EXPECT_DOUBLE_EQ(
      scheduleOf("initial=0.5,final=0.9,from=1,until=3,every=1").sparsityAt(2),
      0.9 - 0.4 / 8);
}

TEST(PruningScheduleTest, OneEventHasTheFinalSparsity) {
  for (const char *text : {"final=0.5,from=10", "final=0.5,from=10,until=10",
                           "from=10,until=10,every=7,final=0.5"}) {
    const PruningSchedule schedule = scheduleOf(text);
    EXPECT_EQ(schedule.events(), 1);
    EXPECT_EQ(schedule.sparsityAt(9), 0);
    EXPECT_EQ(schedule.sparsityAt(10), 0.5);
    EXPECT_TRUE(schedule.hasEvent(10));
    EXPECT_FALSE(schedule.hasEvent(17));
  }
}

TEST(PruningScheduleTest, BadSchedulesAreRefused) {
  EXPECT_EQ(refusalOf("from=3"), "pruning: give final=, as in "
                                 "final=0.9,from=3000,until=7000,every=1000");
  EXPECT_EQ(refusalOf("final=0.5"),
            "pruning: give from=, as in "
            "final=0.9,from=3000,until=7000,every=1000");
  for (const char *share : {"1", "-0.1", "nan", "inf", "", "0.5x", "1e400"})
    EXPECT_EQ(refusalOf(std::string("from=3,final=") + share),
              std::string("pruning: 'final=") + share +
                  "': give a share of weights from 0 to below 1");
  for (const char *step : {"0", "-3", "x", "1.5", "99999999999999999999", ""})
    EXPECT_EQ(refusalOf(std::string("final=0.5,from=") + step),
              std::string("pruning: 'from=") + step +
                  "': give a number of steps from 1 on");
  EXPECT_EQ(refusalOf("initial=0.8,final=0.5,from=1"),
            "pruning: sparsity would fall from 0.8 to 0.5: give a final one "
            "that is not below the initial one");
  EXPECT_EQ(refusalOf("final=0.5,from=9,until=3,every=1"),
            "pruning: the last event, at step 3, is before the first one, at "
            "step 9");
  EXPECT_EQ(refusalOf("final=0.5,from=3,until=9"),
            "pruning: give every=, the steps between events from step 3 to 9");
  EXPECT_EQ(refusalOf("final=0.5,from=3,until=9,every=4"),
            "pruning: events every 4 steps from step 3 on do not meet step 9: "
            "give until=7, or another every=");
  EXPECT_EQ(refusalOf("final=0.5,from=3,final=0.6"),
            "pruning: 'final=0.6': final is given twice");
  for (const char *word : {"sparsity=0.5", "", "final"})
    EXPECT_NE(refusalOf(std::string("from=3,") + word).find("pruning: '"),
              std::string::npos);
}

TEST(PruningScheduleTest, SurvivorsAreTheNearestNumber) {
  EXPECT_EQ(survivorsAt(1000, 0.9), 100);
  EXPECT_EQ(survivorsAt(7, 0.5), 4);
  EXPECT_EQ(survivorsAt(10, 0.999), 1);
  EXPECT_EQ(survivorsAt(10, 0), 10);
  EXPECT_EQ(survivorsAt(0, 0.5), 0);
}

} // namespace
