//===- Schedules.h - In which order a stage runs its micro-batches -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A schedule is the order of the forwards and backwards of each stage of a
// pipeline: one file in this folder defines its rule, one row of Schedules.def
// lists it, and everybody else (flags, options of passes, plans, bounds of
// memory) reads the table. When the items run follows from their costs
// (PipelineSchedule.h).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_SCHEDULES_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_SCHEDULES_H

#include "runtime/base/Status.h"

#include <string>
#include <vector>

namespace dyna {

enum class Schedule {
#define DYNA_SCHEDULE(Id) Id,
#include "runtime/planner/schedules/Schedules.def"
};

/// The forward or backward of one micro-batch on one stage.
struct PipelineItem {
  bool forward = true;
  int microBatch = 0; ///< 0 .. count-1 of the replica
  double start = 0, end = 0;
};

/// A stage as a schedule sees it.
struct StageShape {
  int stage = 0, stages = 1;
  int microBatches = 0; ///< of the replica in this step
  /// Micro-batches whose forwards may all run before their backwards, where the
  /// schedule leaves that to the user.
  int inFlight = 1;
};

struct ScheduleRule {
  const char *name;    ///< in flags and options
  const char *summary; ///< what follows the name in a list
  /// The forwards and backwards of a training step. Every stage has the
  /// forwards in one order, and so the backwards, each behind its forward.
  std::vector<PipelineItem> (*order)(const StageShape &);
  /// How many micro-batches have run forward and not yet backward, at most.
  int (*mostKept)(const StageShape &);
  /// Whether `inFlight` means anything to it.
  bool readsInFlight;
  /// Whether every send is waited for at once.
  bool waitsForSends;
};

const ScheduleRule &ruleOf(Schedule schedule);

/// All of them, in the order of Schedules.def; the first is the default.
const std::vector<Schedule> &allSchedules();

/// The names of all, in that order.
std::vector<std::string> scheduleNames();

/// Fails with the names there are.
StatusOr<Schedule> findSchedule(const std::string &name);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_SCHEDULES_H
