//===- PlanAheadTest.cpp - Order, limits and ends of planning ahead -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/PlanAhead.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

using namespace dyna;

namespace {

PlannedStep numbered(int64_t number) {
  PlannedStep step;
  step.batch.samples.resize(1);
  step.cursor.samples = number;
  return step;
}

TEST(PlanAheadTest, StepsComeInOrderAndNoneTooMany) {
  for (int64_t ahead : {0, 1, 3, 64}) {
    std::atomic<int64_t> made{0}, taken{0};
    std::atomic<bool> tooFar{false};
    {
      PlanAhead plans(
          [&]() -> StatusOr<PlannedStep> {
            // One is being made besides those that wait.
            if (ahead > 0 && made - taken > ahead)
              tooFar = true;
            return numbered(made++);
          },
          ahead, 100);
      for (int64_t i = 0; i < 100; ++i) {
        StatusOr<PlannedStep> step = plans.next();
        ++taken;
        ASSERT_TRUE(step.isOk());
        EXPECT_EQ(step->cursor.samples, i);
      }
    }
    EXPECT_EQ(made, 100);
    EXPECT_FALSE(tooFar) << ahead;
  }
}

TEST(PlanAheadTest, AFailureComesAfterTheStepsBeforeIt) {
  for (int64_t ahead : {0, 2, 10}) {
    int64_t made = 0;
    PlanAhead plans(
        [&]() -> StatusOr<PlannedStep> {
          if (made == 5)
            return Status::invalidArgument("unreadable");
          return numbered(made++);
        },
        ahead, 100);
    for (int64_t i = 0; i < 5; ++i)
      ASSERT_TRUE(plans.next().isOk());
    EXPECT_EQ(plans.next().status().message(), "unreadable");
  }
}

TEST(PlanAheadTest, EndsWhileStepsWait) {
  std::atomic<int64_t> made{0};
  auto begin = std::chrono::steady_clock::now();
  {
    PlanAhead plans([&]() -> StatusOr<PlannedStep> { return numbered(made++); },
                    4, 1000000);
    ASSERT_TRUE(plans.next().isOk());
  }
  EXPECT_LT(made, 100);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(60));
}

// What is thrown in the thread, or here without one, is the step's failure.
TEST(PlanAheadTest, ExceptionsAreFailures) {
  for (int64_t ahead : {0, 2}) {
    PlanAhead plans([]() -> StatusOr<PlannedStep> { throw std::bad_alloc(); },
                    ahead, 3);
    StatusOr<PlannedStep> step = plans.next();
    ASSERT_FALSE(step.isOk());
    EXPECT_EQ(step.status().code(), StatusCode::ResourceExhausted);
    EXPECT_EQ(step.status().message().rfind("out of memory", 0), 0u);
  }
}

} // namespace
