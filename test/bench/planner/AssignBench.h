//===- AssignBench.h - Samples to strategies, and finding those -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_PLANNER_ASSIGNBENCH_H
#define DYNA_TEST_BENCH_PLANNER_ASSIGNBENCH_H

#include <cstdint>
#include <vector>

namespace dyna {

/// One line "assign": the time in which these samples are given to four strategies
/// on 32 ranks. Returns the number of failures.
int benchAssignment(const std::vector<int64_t> &lengths);

/// One line "search": the time in which the strategies, ranges, order and home of
/// a step of 512 of these lengths are found on 32 ranks.
int benchSearch(const std::vector<int64_t> &lengths);

} // namespace dyna

#endif // DYNA_TEST_BENCH_PLANNER_ASSIGNBENCH_H
