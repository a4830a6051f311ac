//===- StepClock.h - Simulates a step under other cuts ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The formula of StageLoads.h knows neither schedules nor micro-batches that differ. So
// the cut that it calls the fastest can be slower: stages of 1F1B wait for each other. A
// clock orders the micro-batches of one step as the run's schedule does, for any cut. Then
// every item runs as soon as its stage is free and its inputs are there. These are the
// times of PipelineTimes.h, and of whole plans that are simulated.
//
// Seconds by layer and micro-batch are those of the cost model. They are scaled, layer by
// layer, so that their means are the measured ones. So micro-batches of other lengths and
// the parts of forward and backward are estimated, and the sum of a layer is measured.
//
// The update, and reductions over replicas, are left out.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_STEPCLOCK_H
#define DYNA_RUNTIME_ELASTIC_STEPCLOCK_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/program/Plan.h"
#include "runtime/planner/request/PlanOptions.h"

#include <cstdint>
#include <map>
#include <vector>

namespace dyna {

/// The work of one replica in a step, by layer.
struct StepWork {
  /// Seconds of micro-batches. Each layer is a stage.
  PipelineProblem layers;
  Schedule schedule = Schedule::OneForwardOneBackward;
  int inFlight = 1;
};

/// Returns the work of the replica with the most seconds. `seconds` has the mean of a
/// micro-batch in forward and backward, by layer. Fails if the degrees of the strategy
/// were not compiled. O(layers * micro-batches).
StatusOr<StepWork> stepWork(const CostModel &costs, const Strategy &strategy,
                            const std::vector<plan::MicroBatch> &microBatches,
                            const PlanOptions &options,
                            const std::vector<double> &seconds);

class StepClock {
public:
  /// `waits` has the seconds in which a stage waits for its links, by stage and for one
  /// micro-batch. Half of them are before each forward, half before each backward. Empty:
  /// none.
  explicit StepClock(StepWork work, std::vector<double> waits = {});

  /// Returns the seconds of a step, or infinity if the schedule cannot run it. Cuts are
  /// simulated once: O(layers * micro-batches) beside the schedule.
  double seconds(const std::vector<int> &cut) const;
  /// Returns a number of seconds that no schedule falls below: all work of a stage, and
  /// the shortest ways to it and back from it. O(stages).
  double bound(const std::vector<int> &cut) const;
  /// Returns how many items one simulation has.
  int64_t items(int stages) const;

private:
  double wait(size_t stage) const {
    return stage < waits_.size() ? waits_[stage] : 0;
  }
  PipelineProblem problemOf(const std::vector<int> &cut) const;

  StepWork work_;
  std::vector<double> waits_;
  /// Seconds of all layers before this one, of all micro-batches.
  std::vector<double> totals_;
  /// Seconds before any micro-batch reaches a layer, and behind its last backward there.
  std::vector<double> around_;
  mutable std::map<std::vector<int>, double> known_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_STEPCLOCK_H
