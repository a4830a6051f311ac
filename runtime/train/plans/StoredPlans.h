//===- StoredPlans.h - Plans that processes share ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Who plans step s: planner s mod N where there are N planners (--plan-only), else
// the process s mod n of the n that execute. All others wait for their ranks'
// parts. A plan is a function of its mini-batch, so whoever makes it, and if two
// make it, it is the same: with --store-retry a process that has waited that long
// makes it itself, and the run's bits do not change.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_STOREDPLANS_H
#define DYNA_RUNTIME_TRAIN_STOREDPLANS_H

#include "runtime/store/Store.h"
#include "runtime/train/plans/PlanSource.h"

namespace dyna {

/// Of executors. `maker` is asked where this process plans. `session` must
/// outlive it. It says where executors stand until it is destroyed.
std::unique_ptr<PlanSource> fetchPlans(const Session &session,
                                       std::unique_ptr<Store> store,
                                       std::unique_ptr<PlanSource> maker);

/// Puts the ranks' parts of a step's plan, of all its phases, but for those of
/// `without`, if given. `run`: runPrefix().
Status putPlan(Store &store, const std::string &run, const PlannedStep &step,
               const std::vector<int> *without = nullptr);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_STOREDPLANS_H
