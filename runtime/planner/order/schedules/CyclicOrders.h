//===- CyclicOrders.h - Implements DynaPipe's Algorithm 1 -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_CYCLICORDERS_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_CYCLICORDERS_H

#include "runtime/planner/order/schedules/Schedules.h"

namespace dyna {

/// Orders items in cycles (DynaPipe, section 5, algorithm 1). In a cycle each
/// stage runs one backward, if one is ready. It also runs one forward, if one
/// is ready and fits `problem.limits` beside what the stage holds. Items that
/// become ready run in a later cycle. The first stage takes the micro-batches
/// in the order of `injected`. Every single one must fit (`checkMemory`). Then
/// the algorithm ends, since the stage with the oldest micro-batch can always
/// go on. Backwards are in one piece. O(items).
StageOrders cyclicOrders(const PipelineProblem &problem,
                         const std::vector<int> &injected);

/// Returns `ScheduleRule::mostKept` of these orders without a memory limit.
int cyclicMostKept(const StageShape &shape);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_CYCLICORDERS_H
