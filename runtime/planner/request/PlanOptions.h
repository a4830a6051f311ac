//===- PlanOptions.h - What a plan is made for -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
#define DYNA_RUNTIME_PLANNER_PLANOPTIONS_H

#include "runtime/planner/cut/batching/Batchings.h"
#include "runtime/planner/order/schedules/Schedules.h"
#include "runtime/planner/request/RecomputeModes.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace dyna {

/// Tokens of a micro-batch, where nobody says.
inline constexpr int64_t kUsualMicroBatch = 4096;

struct PlanOptions {
  RecomputeModes recompute = {plan::RECOMPUTE_NONE};
  /// The modes of a training step are chosen for each stage and micro-batch
  /// (ChooseRecompute.h) where memory is limited; else nothing is recomputed.
  bool chooseRecompute = false;
  /// Filled in by that choice, by the plan's number of the micro-batch: where
  /// there is an entry, it stands instead of `recompute`.
  std::vector<RecomputeModes> microBatchRecompute;
  Batching batching = Batching::Ragged;
  /// Of a micro-batch of several samples, padding included.
  int64_t maxTokensPerMicroBatch = kUsualMicroBatch;
  /// A longer sample than that is alone in its micro-batch, and has at most so
  /// many tokens; where this is less, there are no such samples.
  int64_t longestSample = 0;
  /// Of a step; 0: any number. Regions need no room for more; plans do not read
  /// it.
  int64_t tokensPerStep = 0;
  Schedule schedule = Schedule::GPipe;
  /// Micro-batches whose forwards all run before their backwards, for schedules
  /// that read it.
  int inFlight = 1;
  bool splitBackward = false;
  /// End with GRAD_NORM and UPDATE.
  bool update = true;
  /// Without it updates come without GRAD_NORM: nothing is clipped, and nothing
  /// notices a gradient that is not finite (P5).
  bool norms = true;
  /// Of a phase of another graph than home (StepPlan.h): nothing is gathered or
  /// updated, gradients are reduced over their holders.
  bool switched = false;
  /// Every send right behind what makes its tensor, every receive right before
  /// what needs it, as no plan that is to run may have them: ranks that carry out
  /// one after another then wait for each other (DynaPipe, section 2 and figure
  /// 8). For showing that.
  bool naiveMessages = false;
  /// Bytes of each rank's dynamic region; empty: not limited. A program that
  /// would need more is laid out for the largest micro-batches instead; where
  /// that does not fit either, the order becomes one that goes by memory, and
  /// at last sequential, which always fits `leastDynamicBytes` of the same
  /// options. The plan's `fallback` says so.
  std::vector<int64_t> dynamicLimits;
  /// Filled in by the planner: micro-batches that each stage may hold, where a
  /// schedule goes by memory; empty: as many as fit.
  std::vector<int> mostKept;

  bool reduces() const { return update || switched; }

  /// That any micro-batch may have.
  int64_t mostTokens() const {
    return std::max(maxTokensPerMicroBatch, longestSample);
  }

  plan::Recompute modeOf(int layer, int microBatch) const {
    return dyna::modeOf(microBatchRecompute.empty()
                            ? recompute
                            : microBatchRecompute[microBatch],
                        layer);
  }
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
