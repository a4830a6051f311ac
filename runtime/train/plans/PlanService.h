//===- PlanService.h - Plans the steps of other processes -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANSERVICE_H
#define DYNA_RUNTIME_TRAIN_PLANSERVICE_H

#include "runtime/store/Store.h"
#include "runtime/train/plans/PlanMark.h"

namespace dyna {

struct PlanServiceResult {
  int64_t plans = 0; ///< plans that were put into the store
  int stoppedBy = 0; ///< number of a signal; 0: none
};

/// Runs planner I of N. It puts the plans of steps I, I + N, ... into the
/// store. It stays at most --plan-ahead steps ahead of the executors, wherever
/// they are. Ends with the last step, the end of the data, the executors' run,
/// or a signal. Fails if executors are silent for --timeout seconds.
StatusOr<PlanServiceResult> servePlans(const Session &session, Store &store,
                                       const PlannerNumber &number);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANSERVICE_H
