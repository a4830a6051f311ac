//===- TimedOrders.h - Small pipelines and when they run --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_TIMEDORDERS_H
#define DYNA_TEST_RUNTIME_PLANNER_TIMEDORDERS_H

#include "runtime/planner/order/PipelineTimes.h"

#include <gtest/gtest.h>

namespace dyna {

/// Equal micro-batches: backward takes twice a forward of 1 and keeps 1 byte.
inline PipelineProblem even(int stages, int microBatches, bool split = false) {
  PipelineProblem problem;
  size_t s = static_cast<size_t>(stages), m = static_cast<size_t>(microBatches);
  problem.forward.assign(s, std::vector<double>(m, 1));
  problem.backward.assign(s, std::vector<double>(m, 2));
  problem.kept.assign(s, std::vector<int64_t>(m, 1));
  if (split) {
    problem.weight = problem.forward;
    problem.late = problem.kept;
  }
  return problem;
}

/// As the rule times it.
inline StageOrders adaptive(const PipelineProblem &problem) {
  auto orders = ruleOf(Schedule::Adaptive).order(problem);
  EXPECT_TRUE(orders.isOk()) << orders.status().message();
  ClockOptions clock;
  clock.fillsGaps = true;
  Status timed = timeItems(*orders, problem, clock);
  EXPECT_TRUE(timed.isOk()) << timed.message();
  return *orders;
}

/// Timed as schedules are that fill no gaps.
inline StageOrders timed(StageOrders orders, const PipelineProblem &problem) {
  EXPECT_TRUE(timeItems(orders, problem, {}).isOk());
  return orders;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_TIMEDORDERS_H
