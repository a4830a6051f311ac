//===- LearningRateTest.cpp - Warm-up and schedules -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/flags/LearningRate.h"

#include <gtest/gtest.h>

#include <cmath>

using namespace dyna;

namespace {

TrainOptions options(const char *schedule) {
  TrainOptions options;
  options.steps = 110;
  options.warmup = 10;
  options.learningRate = 1;
  options.minLearningRate = 0.1;
  options.schedule = schedule;
  return options;
}

TEST(LearningRateTest, WarmsUpLinearly) {
  for (const char *schedule : {"cosine", "linear", "constant"}) {
    EXPECT_DOUBLE_EQ(learningRate(options(schedule), 0), 0.1);
    EXPECT_DOUBLE_EQ(learningRate(options(schedule), 4), 0.5);
    EXPECT_DOUBLE_EQ(learningRate(options(schedule), 9), 1);
    EXPECT_DOUBLE_EQ(learningRate(options(schedule), 10), 1);
  }
}

TEST(LearningRateTest, FallsAsTheScheduleSays) {
  EXPECT_NEAR(learningRate(options("cosine"), 60), 0.55, 1e-15);
  EXPECT_NEAR(learningRate(options("cosine"), 35),
              0.1 + 0.45 * (1 + std::cos(M_PI / 4)), 1e-15);
  EXPECT_NEAR(learningRate(options("linear"), 35), 0.775, 1e-15);
  EXPECT_EQ(learningRate(options("constant"), 100), 1);
  for (const char *schedule : {"cosine", "linear"})
    for (int64_t after : {110, 111, 100000})
      EXPECT_DOUBLE_EQ(learningRate(options(schedule), after), 0.1);
}

TEST(LearningRateTest, ScheduleStepsFixTheEnd) {
  TrainOptions more = options("cosine");
  more.steps = 1000;
  more.scheduleSteps = 110;
  for (int64_t step : {0, 20, 70, 109, 500})
    EXPECT_EQ(learningRate(more, step), learningRate(options("cosine"), step));
}

TEST(LearningRateTest, NoWarmUpAndOneStep) {
  TrainOptions one = options("cosine");
  one.steps = 1;
  one.warmup = 0;
  EXPECT_EQ(learningRate(one, 0), 1);
}

TEST(LearningRateTest, CorrectionsAreAdams) {
  TrainOptions o = options("constant");
  EXPECT_DOUBLE_EQ(optimizerAt(o, 0).correction1, 1 - 0.9);
  EXPECT_DOUBLE_EQ(optimizerAt(o, 2).correction2, 1 - 0.95 * 0.95 * 0.95);
}

} // namespace
