//===- PlanSingleRank.h - Plans for one rank -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan of one mini-batch on one rank: a Planner for the strategy without
// parallelism.
//
//     for each window of `inFlight` micro-batches
//       each: LOAD, FORWARD 0 .. L-1
//       each: (RECOMPUTE) BACKWARD L-1 .. 0, each followed by FREE
//     GRAD_NORM and then UPDATE of each layer that owns parameters
//
// With `splitBackward`, BACKWARD is BACKWARD_INPUT, and the BACKWARD_WEIGHTs of
// a micro-batch follow after all of them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANSINGLERANK_H
#define DYNA_RUNTIME_PLANNER_PLANSINGLERANK_H

#include "runtime/planner/Planner.h"

namespace dyna {

inline StatusOr<plan::Plan> planTraining(const ManifestView &view,
                                         const std::vector<int64_t> &lengths,
                                         int64_t targetTokens,
                                         const PlanOptions &options) {
  return Planner(view).training(lengths, targetTokens, options);
}

inline StatusOr<plan::Plan> planEvaluation(const ManifestView &view,
                                           const std::vector<int64_t> &lengths,
                                           int64_t targetTokens,
                                           const PlanOptions &options) {
  return Planner(view).evaluation(lengths, targetTokens, options);
}

inline plan::Plan planCast(const ManifestView &view) {
  return *Planner(view).cast();
}

inline StatusOr<plan::Plan> planUpdate(const ManifestView &view) {
  return Planner(view).update();
}

inline StatusOr<int64_t> largestDynamicBytes(const ManifestView &view,
                                             const PlanOptions &options,
                                             bool training) {
  auto bytes = Planner(view).largestDynamicBytes(options, training);
  if (!bytes.isOk())
    return bytes.status();
  return bytes->front();
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANSINGLERANK_H
