//===- PlanOptions.h - Holds options of one plan ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
#define DYNA_RUNTIME_PLANNER_PLANOPTIONS_H

#include "runtime/planner/cut/SliceChoice.h"
#include "runtime/planner/cut/batching/Batchings.h"
#include "runtime/planner/order/schedules/Schedules.h"
#include "runtime/planner/request/RecomputeModes.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dyna {

/// Default limit of tokens in a micro-batch.
inline constexpr int64_t kUsualMicroBatch = 4096;

/// Settings of a plan. The planner only reads them; what it decides is in a
/// `PlanChoice`.
struct PlanOptions {
  RecomputeModes recompute = {plan::RECOMPUTE_NONE};
  /// Lets the planner choose modes for each stage and micro-batch of a training step
  /// (ChooseRecompute.h). Without a memory limit nothing is recomputed.
  bool chooseRecompute = false;
  Batching batching = Batching::Ragged;
  /// Limit of tokens in a micro-batch of several samples, padding included.
  int64_t maxTokensPerMicroBatch = kUsualMicroBatch;
  /// Limit of tokens in a longer sample, which is alone in its micro-batch. If this is
  /// below `maxTokensPerMicroBatch`, there are no such samples.
  int64_t longestSample = 0;
  /// Limit of tokens in a step; 0: none. Sizes of regions depend on it. Plans do not
  /// read it.
  int64_t tokensPerStep = 0;
  Schedule schedule = Schedule::GPipe;
  /// Number of micro-batches whose forwards all run before their backwards. Only some
  /// schedules read it.
  int inFlight = 1;
  bool splitBackward = false;
  SliceChoice slices; ///< cut of micro-batches into slices
  /// Ends the step with GRAD_NORM and UPDATE.
  bool update = true;
  /// Computes gradient norms before updates. Without norms nothing is clipped, and no
  /// gradient that is not finite is noticed (P5).
  bool norms = true;
  /// True for a phase of a graph other than home (StepPlan.h). Such a phase gathers and
  /// updates nothing, and reduces gradients over their holders.
  bool switched = false;
  /// Puts every send directly after the instruction that makes its tensor, and
  /// every receive directly before the instruction that needs it. Ranks then
  /// wait for each other (DynaPipe, section 2 and figure 8). Only
  /// demonstrations set it.
  bool naiveMessages = false;
  /// Bytes of each rank's dynamic region; empty: no limit. A program that needs more
  /// is laid out for the largest micro-batches instead. If that does not fit either,
  /// the planner tries a schedule that adapts to memory, and at last the sequential
  /// one. The sequential one always fits `leastDynamicBytes` of the same options. The
  /// plan's `fallback` names the schedule.
  std::vector<int64_t> dynamicLimits;

  bool reduces() const { return update || switched; }
  /// Returns true if modes are to be chosen, and there is a reason to.
  bool choosesModes() const {
    return chooseRecompute && !dynamicLimits.empty();
  }

  /// Returns the largest number of tokens that any micro-batch may have.
  int64_t mostTokens() const {
    return std::max(maxTokensPerMicroBatch, longestSample);
  }
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
