//===- PlanService.h - A process that only plans ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANSERVICE_H
#define DYNA_RUNTIME_TRAIN_PLANSERVICE_H

#include "runtime/store/Store.h"
#include "runtime/train/plans/PlanMark.h"

namespace dyna {

struct PlanServiceResult {
  int64_t plans = 0; ///< that were put
  int stoppedBy = 0; ///< a signal's number; 0: by none
};

/// Planner I of N: puts the plans of steps I, I + N, ... as far ahead of the
/// executors as --plan-ahead says, wherever in the run they stand. Ends with the
/// last step, the end of the data, the executors' run, or a signal; fails where
/// executors say nothing for --timeout seconds.
StatusOr<PlanServiceResult> servePlans(const Session &session, Store &store,
                                       const PlannerNumber &number);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANSERVICE_H
