//===- StoredPlans.h - Shares plans between processes through a store -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Step s is planned by planner s mod N if there are N planners (--plan-only).
// Otherwise process s mod n of the n executors plans it. All others wait for
// their ranks' parts. A plan is a function of its mini-batch, so all processes
// would make the same one. With --store-retry a process that has waited that
// long makes the plan itself, and the results of the run do not change.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_STOREDPLANS_H
#define DYNA_RUNTIME_TRAIN_STOREDPLANS_H

#include "runtime/store/Store.h"
#include "runtime/train/plans/PlanSource.h"

namespace dyna {

/// Returns the source of plans of an executor. `maker` makes the plans that
/// this process has to make. `session` must outlive the source. Until the
/// source is destroyed, it announces the position of the run.
std::unique_ptr<PlanSource> fetchPlans(const Session &session,
                                       std::unique_ptr<Store> store,
                                       std::unique_ptr<PlanSource> maker);

/// Puts the ranks' parts of a step's plan, of all its phases. Leaves out the
/// ranks of `without`, if given. `run` is runPrefix().
Status putPlan(Store &store, const std::string &run, const PlannedStep &step,
               const std::vector<int> *without = nullptr);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_STOREDPLANS_H
