//===- SaveScheduleTest.cpp - When a run is saved -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/SaveSchedule.h"

#include <gtest/gtest.h>

using namespace dyna;
using namespace std::chrono_literals;

namespace {

SaveSchedule made(const char *text, SaveSchedule::Clock::time_point now) {
  SaveSchedule schedule = *SaveSchedule::parse(text);
  schedule.start(now);
  return schedule;
}

const SaveSchedule::Clock::time_point begin{};

TEST(SaveScheduleTest, BySteps) {
  SaveSchedule schedule = made("3", begin);
  for (int64_t step = 1; step < 10; ++step)
    EXPECT_EQ(schedule.isDue(step, begin + 100h), step % 3 == 0) << step;
  EXPECT_FALSE(made("0", begin).isDue(5, begin + 100h));
}

TEST(SaveScheduleTest, ByTime) {
  for (auto [text, time] :
       {std::pair<const char *, std::chrono::seconds>("90s", 90s),
        {"10min", 600s},
        {"2h", 7200s}}) {
    SaveSchedule schedule = made(text, begin);
    EXPECT_FALSE(schedule.isDue(1, begin + time - 1s)) << text;
    EXPECT_TRUE(schedule.isDue(1, begin + time)) << text;
    schedule.saved(begin + time);
    EXPECT_FALSE(schedule.isDue(2, begin + 2 * time - 1s)) << text;
    EXPECT_TRUE(schedule.isDue(2, begin + 2 * time)) << text;
  }
}

// Whatever the schedule, it is tried again after a minute.
TEST(SaveScheduleTest, SoonAfterAFailure) {
  for (const char *text : {"1000", "2h"}) {
    SaveSchedule schedule = made(text, begin);
    schedule.failed(begin + 1h);
    EXPECT_FALSE(schedule.isDue(7, begin + 1h + 59s)) << text;
    EXPECT_TRUE(schedule.isDue(7, begin + 1h + 60s)) << text;
    schedule.saved(begin + 1h + 60s);
    EXPECT_FALSE(schedule.isDue(8, begin + 1h + 120s)) << text;
  }
}

TEST(SaveScheduleTest, OtherTextIsRefused) {
  for (const char *text : {"", "x", "-1", "10m", "0min", "5 s", "1.5h",
                           "3steps", "99999999999999999999"})
    EXPECT_FALSE(SaveSchedule::parse(text).isOk()) << text;
}

} // namespace
