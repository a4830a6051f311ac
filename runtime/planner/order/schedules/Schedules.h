//===- Schedules.h - Lists the schedules ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A schedule is the order of the forwards and backwards of all stages of a
// pipeline. One file in this folder defines its rule, and one row of
// Schedules.def lists it. All other code (flags, options of passes, plans,
// memory bounds) reads the table. The times of items follow from their costs
// (PipelineTimes.h).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_SCHEDULES_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_SCHEDULES_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/order/schedules/BackwardOrder.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"

#include <string>
#include <vector>

namespace dyna {

enum class Schedule {
#define DYNA_SCHEDULE(Id) Id,
#include "runtime/planner/order/schedules/Schedules.def"
};

/// A part of the work of one micro-batch on one stage.
struct PipelineItem {
  ItemKind kind = ItemKind::Forward;
  int microBatch = 0; ///< 0 .. count-1 of the replica
  double start = 0;
  /// When all that it waits for is there, and its stage has computed again what
  /// needs no waiting.
  double inputs = 0;
  double end = 0;

  bool isForward() const { return kind == ItemKind::Forward; }
  bool isBackward() const { return kind == ItemKind::Backward; }
};

/// Items of each stage, in the order in which it runs them.
using StageOrders = std::vector<std::vector<PipelineItem>>;

/// A stage as a schedule sees it that goes by numbers alone. In a graph that is no
/// chain, `stages` is the number of levels, and stages of one depth are alike.
struct StageShape {
  int stage = 0, stages = 1;
  int microBatches = 0; ///< of the replica in this step
  int inFlight = 1;     ///< as in PipelineProblem
};

struct ScheduleRule {
  const char *name;    ///< in flags and options
  const char *summary; ///< text after the name in a list
  /// The items of a training step. All stages have the forwards in one order,
  /// and so the backwards, each after its forward; both keep what follows what.
  /// Fails where the micro-batches cannot be run in the memory there is, for
  /// schedules that look at it.
  StatusOr<StageOrders> (*order)(const PipelineProblem &);
  /// Returns the largest number of micro-batches that have run forward and not
  /// yet backward, without a memory limit. Micro-batches that follow each other
  /// count as one.
  int (*mostKept)(const StageShape &);
  /// True if it reads `inFlight`.
  bool readsInFlight;
  /// True if every send is waited for at once.
  bool waitsForSends;
  /// True if it follows costs and memory, and fills gaps. Weight gradients that
  /// can run separately are then items of their own. The recomputation of a
  /// backward comes before the wait for its gradient.
  bool adapts = false;
  /// True if a send is waited for only when its receiver has reached it, in
  /// cases in which that may take longer than one item.
  bool waitsLate = false;
};

/// Orders the items of each stage by its shape and the order of backwards.
StageOrders
ordersByShape(const PipelineProblem &problem,
              std::vector<PipelineItem> (*ofStage)(const StageShape &,
                                                   const BackwardOrder &));

/// Adds weight gradients directly after the backward of each micro-batch.
void addWeights(StageOrders &orders);

const ScheduleRule &ruleOf(Schedule schedule);

/// Returns all schedules, in the order of Schedules.def.
const std::vector<Schedule> &allSchedules();

/// Returns the schedule of plans with this many stages if none is requested.
Schedule defaultSchedule(int stages);

/// Returns the names of all schedules, in that order.
std::vector<std::string> scheduleNames();

/// Fails with the names there are.
StatusOr<Schedule> findSchedule(const std::string &name);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_SCHEDULES_H
