//===- PipelineBounds.h - What no schedule can do better --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Lower bounds of the makespan of a pipeline, whatever the order of its items,
// to be printed beside what a schedule takes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PIPELINEBOUNDS_H
#define DYNA_RUNTIME_PLANNER_PIPELINEBOUNDS_H

#include "runtime/planner/order/schedules/PipelineProblem.h"

namespace dyna {

struct PipelineBounds {
  /// Of the stage, and of those of its micro-batches with the longest ways to it
  /// and back, where it is largest: the earliest arrival of any input, all their
  /// work, and the shortest way to the end after the last item.
  double load = 0;
  /// The longest way of any micro-batch, down, up, and with its transfers.
  double path = 0;
  /// Where memory is limited: every micro-batch holds its bytes for as long as it
  /// takes to come back, so that bytes times seconds fit limit times makespan.
  double memory = 0;
  /// What each stage has to have at least: its largest micro-batch alone.
  std::vector<int64_t> bytes;

  double seconds() const { return std::max({load, path, memory}); }
};

/// For schedules that fill gaps (ScheduleRule), and so for all others too.
/// O(stages * micro-batches * log micro-batches).
PipelineBounds boundPipeline(const PipelineProblem &problem);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PIPELINEBOUNDS_H
