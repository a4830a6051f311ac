//===- StateBench.h - Switches of state beside their floor ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_PLANNER_STATEBENCH_H
#define DYNA_TEST_BENCH_PLANNER_STATEBENCH_H

namespace bench {

/// Plans how the state of GPTs moves between graphs that replace each other, and prints
/// a line for each pair. Returns the number of failures.
int measureStates();

} // namespace bench

#endif // DYNA_TEST_BENCH_PLANNER_STATEBENCH_H
