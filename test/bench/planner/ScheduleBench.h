//===- ScheduleBench.h - What ordering a mini-batch costs and gives -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_PLANNER_SCHEDULEBENCH_H
#define DYNA_TEST_BENCH_PLANNER_SCHEDULEBENCH_H

/// Prints its lines; how many settings failed, or came out longer than what they
/// are compared with.
int benchSchedules();

#endif // DYNA_TEST_BENCH_PLANNER_SCHEDULEBENCH_H
