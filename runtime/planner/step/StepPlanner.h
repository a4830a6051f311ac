//===- StepPlanner.h - Plans the steps of several graphs ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The planner assigns the samples of a mini-batch to the graphs of ranges and plans a
// phase for each graph with samples. Then it joins the phases by switches, places
// them and verifies the step. Equal mini-batches have equal plans in every process of
// a run, and in tools that report what a run would do.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STEPPLANNER_H
#define DYNA_RUNTIME_PLANNER_STEPPLANNER_H

#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/step/GraphEstimates.h"
#include "runtime/planner/step/StepGraphs.h"

#include <vector>

namespace dyna {

/// Duration and bytes of the switches of one phase: its values from home, and its
/// gradients to home. Bytes are the sum of what all ranks send to other ranks. Data
/// that is passed on counts each time.
struct PhaseSwitchCosts {
  double valueSeconds = 0, gradientSeconds = 0;
  int64_t valueBytes = 0, gradientBytes = 0;

  double seconds() const { return valueSeconds + gradientSeconds; }
  int64_t bytes() const { return valueBytes + gradientBytes; }
};

class StepPlanner {
public:
  /// `graphs` has one graph for each range, with all options known. They must outlive
  /// this object. `orchestration` is theirs. With `merges`, ranges that are not worth
  /// their switch in a step merge upwards, by the planners' costs. `regionBytes` has
  /// the bytes of each rank for the phases of a step, beside home's parameters.
  StepPlanner(std::vector<const PlannedGraph *> graphs, LengthRanges ranges,
              Orchestration orchestration, bool merges,
              std::vector<int64_t> regionBytes);

  /// Returns the graph of a range. The table of switches has the same numbers.
  const PlannedGraph &graph(int range) const { return *graphs_[range]; }
  const PlannedGraph &home() const { return graph(orchestration_.home()); }
  const LengthRanges &ranges() const { return ranges_; }
  /// Ranges in the order of a step's phases.
  const std::vector<int> &order() const { return orchestration_.order; }
  const std::vector<int64_t> &regionBytes() const { return regionBytes_; }
  const SwitchTable &switches() const { return orchestration_.switches; }

  /// Plans and verifies a mini-batch of these lengths with `targets` targets. With
  /// `trains`, the step computes gradients, and with `update` it ends with the update.
  /// Otherwise it only computes losses, and no ranges merge.
  StatusOr<VerifiedStep> plan(const std::vector<int64_t> &lengths,
                              int64_t targets, bool trains, bool update) const;

  /// Returns the seconds of all switches of a step.
  double switchSeconds(const VerifiedStep &step) const;
  PhaseSwitchCosts switchCosts(const VerifiedStep &step, int phase) const;

private:
  StatusOr<std::vector<std::vector<int>>>
  assign(const std::vector<int64_t> &lengths, bool trains) const;
  StatusOr<plan::Plan> planPhase(int range, const std::vector<int64_t> &lengths,
                                 int64_t targets, bool trains,
                                 bool update) const;

  const std::vector<const PlannedGraph *> graphs_;
  const LengthRanges ranges_;
  const Orchestration orchestration_;
  const bool merges_;
  const std::vector<int64_t> regionBytes_; ///< by rank
  const GraphEstimates estimates_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPPLANNER_H
