//===- CutClock.h - Times cuts of a mini-batch ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Choices among cuts of a mini-batch, into micro-batches or slices, compare seconds of
// the schedule in the memory of each rank.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CUTCLOCK_H
#define DYNA_RUNTIME_PLANNER_CUTCLOCK_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/planner/estimate/StageTables.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"
#include "runtime/planner/request/PlanChoice.h"
#include "runtime/planner/request/PlanOptions.h"

#include <utility>
#include <vector>

namespace dyna {

/// First: true if a replica's memory does not fit the order that is asked for. Second:
/// seconds of the slowest replica, infinite if one fits no order.
using CutTime = std::pair<bool, double>;

/// Returns the time of a replica's pipeline in the memory of its ranks, whose blocks it
/// holds. If it does not fit the schedule, that is the time of an adaptive order. `beside`:
/// bytes of each rank that are not free.
CutTime timeWithin(PipelineProblem pipeline, const ExecutableGraph &graph,
                   const plan::Plan &plan, const std::vector<int> &own,
                   int replica, const PlanChoice &choice,
                   const std::vector<int64_t> &beside);

class CutClock {
public:
  /// All arguments must outlive the clock. Messages take no time at first.
  CutClock(const ExecutableGraph &graph, const CostModel &costs,
           const StageTables &tables, const PlanOptions &options, bool trains)
      : graph_(graph), costs_(costs), tables_(tables), options_(options),
        trains_(trains) {}

  /// Counts the time of messages between stages from now on.
  void countMessages() { countsMessages_ = true; }
  /// Ignores the memory limits of ranks from now on.
  void ignoreMemory() { ignoresMemory_ = true; }

  int stages() const { return graph_.stages(); }
  /// Returns true if ranks have limits of bytes, which cuts have to fit.
  bool isLimited() const;
  /// Returns costs of slices by the same tables. The clock must outlive them.
  SliceTimes sliceTimes() const { return sliceTimes(tables_, options_); }
  /// Returns costs of slices by other tables, which are those of `options`.
  SliceTimes sliceTimes(const StageTables &tables,
                        const PlanOptions &options) const;

  /// Returns the time of the slowest replica, or of the given one. With
  /// `searched` it is that of the best simple order of a schedule that
  /// searches. O(micro-batches * stages), times the simple orders.
  CutTime timeOf(const MicroBatches &cut, bool searched,
                 int replica = -1) const;
  /// Returns what stages take with micro-batches of one replica, without their bytes.
  PipelineProblem pipelineOf(const plan::Plan &plan,
                             const std::vector<int> &own) const;

private:
  CutTime timeOfSearched(PipelineProblem pipeline) const;
  CutTime timeOfUnlimited(const PipelineProblem &pipeline) const;

  const ExecutableGraph &graph_;
  const CostModel &costs_;
  const StageTables &tables_;
  const PlanOptions &options_;
  const bool trains_;
  bool countsMessages_ = false;
  bool ignoresMemory_ = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CUTCLOCK_H
