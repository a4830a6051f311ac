//===- PlanSingleRank.h - Plans for one rank --------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// The plan of one mini-batch on one rank: every micro-batch passes all layers
// forward and backward, gradients add up, and one update ends the step. Offsets
// are chosen by `placeBlocks`, so that `dynamic_bytes` is exactly what the plan
// needs.
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

#include "runtime/plan/ManifestView.h"

#include <vector>

namespace dyna {

struct PlanOptions {
  /// One mode per layer, or one for all.
  std::vector<plan::Recompute> recompute = {plan::RECOMPUTE_NONE};
  int64_t maxTokensPerMicroBatch = 4096;
  /// Micro-batches whose forwards all run before their backwards.
  int inFlight = 1;
  bool splitBackward = false;
  /// End with GRAD_NORM and UPDATE.
  bool update = true;
  /// The dynamic region's size, 0: not limited. A plan that would need more is
  /// laid out for the largest micro-batches instead, which always fits
  /// `largestDynamicBytes` of the same options.
  int64_t dynamicLimit = 0;
};

/// `lengths[i]`: tokens of sample i; `targetTokens`: targets of all together.
StatusOr<plan::Plan> planTraining(const ManifestView &view,
                                  const std::vector<int64_t> &lengths,
                                  int64_t targetTokens,
                                  const PlanOptions &options);

/// The same for EVALUATE: losses only.
StatusOr<plan::Plan> planEvaluation(const ManifestView &view,
                                    const std::vector<int64_t> &lengths,
                                    int64_t targetTokens,
                                    const PlanOptions &options);

/// Casts the masters of all parameters into the compute type; an empty program
/// where these are the same.
plan::Plan planCast(const ManifestView &view);

/// GRAD_NORM and UPDATE alone, for gradients that are there already (a plan
/// with `update` off leaves them).
StatusOr<plan::Plan> planUpdate(const ManifestView &view);

/// Bytes of the dynamic region that are enough for every plan made with these
/// options: training (if `training`), evaluation and cast.
StatusOr<int64_t> largestDynamicBytes(const ManifestView &view,
                                      const PlanOptions &options,
                                      bool training);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANSINGLERANK_H
