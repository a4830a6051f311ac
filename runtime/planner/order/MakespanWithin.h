//===- MakespanWithin.h - Computes makespans within memory ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_MAKESPANWITHIN_H
#define DYNA_RUNTIME_PLANNER_MAKESPANWITHIN_H

#include "runtime/planner/order/schedules/Schedules.h"

namespace dyna {

/// Returns the makespan under the schedule within the limits of the problem, and infinity
/// if it does not fit. It is exact for schedules that do not go by memory. For others it is
/// that of two simple orders, which a search only makes shorter. O(stages * micro-batches).
/// Schedules that do not go by memory may have `beside` of `holdBlocks` (StageMemory.h).
double makespanWithin(const PipelineProblem &problem, Schedule schedule,
                      const PipelineProblem::Bytes *beside = nullptr);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_MAKESPANWITHIN_H
