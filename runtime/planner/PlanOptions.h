//===- PlanOptions.h - What a plan is made for -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
#define DYNA_RUNTIME_PLANNER_PLANOPTIONS_H

#include "runtime/planner/RecomputeModes.h"
#include "runtime/planner/batching/Batchings.h"
#include "runtime/planner/schedules/Schedules.h"

#include <cstdint>
#include <vector>

namespace dyna {

struct PlanOptions {
  RecomputeModes recompute = {plan::RECOMPUTE_NONE};
  Batching batching = Batching::Ragged;
  /// Padding included.
  int64_t maxTokensPerMicroBatch = 4096;
  Schedule schedule = Schedule::GPipe;
  /// Micro-batches whose forwards all run before their backwards, for schedules
  /// that read it.
  int inFlight = 1;
  bool splitBackward = false;
  /// End with GRAD_NORM and UPDATE.
  bool update = true;
  /// Bytes of each rank's dynamic region; empty: not limited. A program that
  /// would need more is laid out for the largest micro-batches instead; where
  /// that does not fit either, the plan becomes sequential, which always fits
  /// `largestDynamicBytes` of the same options.
  std::vector<int64_t> dynamicLimits;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANOPTIONS_H
