//===- OrderSearch.h - Searches injection orders ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_ORDERSEARCH_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_ORDERSEARCH_H

#include "runtime/planner/order/schedules/OrderSimulator.h"

namespace dyna {

/// Micro-batches of similar time in at most `count` clusters, which are concatenated
/// in every order of them (DynaPipe, section 5). Clusters have the least sum of
/// squared differences from their means, exactly; in one, micro-batches have the
/// order of their numbers. O(count * n^2), and what it returns.
std::vector<std::vector<int>> clusterOrders(const std::vector<double> &seconds,
                                            int count);

/// Seconds of each micro-batch on all stages.
std::vector<double> totalSeconds(const PipelineProblem &problem);

/// Returns the shortest schedule found, within the limits and with at most
/// `mostKept` micro-batches on a stage. Candidates are schedules in which every
/// stage dispatches as in OrderSimulator, and Algorithm 1 with 3 and 4
/// clusters. The same problem has the same answer. Every micro-batch must fit
/// (`checkMemory`). At most a few million items are simulated.
///
/// Micro-batches that follow each other (`previous`) change places together, as one
/// unit. Returns no stages if such units do not fit in any order that was tried.
StageOrders searchOrders(const PipelineProblem &problem,
                         const std::vector<int> &mostKept);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_ORDERSEARCH_H
