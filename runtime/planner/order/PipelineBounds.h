//===- PipelineBounds.h - Bounds the time of all schedules ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lower bounds of the makespan of a pipeline, whatever the order of its items,
// printed beside the time of a schedule.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PIPELINEBOUNDS_H
#define DYNA_RUNTIME_PLANNER_PIPELINEBOUNDS_H

#include "runtime/planner/order/schedules/PipelineProblem.h"

namespace dyna {

struct PipelineBounds {
  /// Bound from the work of a stage. It is the earliest arrival of any input,
  /// plus the work of some micro-batches, plus the shortest way to the end
  /// after the last item. The stage and its micro-batches, those with the
  /// longest ways, are chosen so that the bound is largest.
  double load = 0;
  /// The longest way of any micro-batch, down, up, and with its transfers.
  double path = 0;
  /// Bound from limited memory. Every micro-batch holds its bytes until it
  /// comes back, so bytes times seconds must fit into limit times makespan.
  double memory = 0;
  /// Bytes that each stage must have at least: its largest micro-batch alone.
  std::vector<int64_t> bytes;

  double seconds() const { return std::max({load, path, memory}); }
};

/// Computes bounds for schedules that fill gaps (ScheduleRule), which hold for
/// all others too. O(stages * micro-batches * log micro-batches).
PipelineBounds boundPipeline(const PipelineProblem &problem);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PIPELINEBOUNDS_H
