//===- PlanOptions.h - What a plan is made for -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
#define DYNA_RUNTIME_PLANNER_PLANOPTIONS_H

#include "runtime/plan/Plan.pb.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// The order in which a stage runs its micro-batches.
enum class Schedule {
  /// Windows of `inFlight` micro-batches: all forwards, then all backwards
  /// (GPipe; one stage with inFlight = 1 is plain gradient accumulation).
  GPipe,
  /// Stage s of S runs min(S - s, count) forwards ahead, then one backward
  /// after each forward (1F1B): no stage keeps more than S - s micro-batches.
  OneForwardOneBackward,
  /// One micro-batch at a time passes all stages forward and backward, and
  /// every send is waited for at once: slow, but nothing of two micro-batches
  /// is ever there together.
  Sequential,
};

struct PlanOptions {
  /// One mode per layer, or one for all.
  std::vector<plan::Recompute> recompute = {plan::RECOMPUTE_NONE};
  int64_t maxTokensPerMicroBatch = 4096;
  Schedule schedule = Schedule::GPipe;
  /// Micro-batches whose forwards all run before their backwards (GPipe).
  int inFlight = 1;
  bool splitBackward = false;
  /// End with GRAD_NORM and UPDATE.
  bool update = true;
  /// Bytes of each rank's dynamic region; empty: not limited. A program that
  /// would need more is laid out for the largest micro-batches instead; where
  /// that does not fit either, the plan becomes Sequential, which always fits
  /// `largestDynamicBytes` of the same options.
  std::vector<int64_t> dynamicLimits;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
