//===- StepPlanner.h - Plans of steps of several graphs ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Deals the samples of a mini-batch to the graphs of ranges, plans a phase for
// each that has some, joins them with their switches, places all of it and proves
// it. The same mini-batch has the same plan, whoever makes it: every process of a
// run, and a tool that says what a run would do.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STEPPLANNER_H
#define DYNA_RUNTIME_PLANNER_STEPPLANNER_H

#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/step/GraphEstimates.h"
#include "runtime/planner/step/StepGraphs.h"

#include <vector>

namespace dyna {

/// What the switches of one phase take: of its values on their way to it, and of
/// its gradients on theirs home. Bytes are what all ranks send to others, those
/// that are handed on counted each time.
struct PhaseSwitchCosts {
  double valueSeconds = 0, gradientSeconds = 0;
  int64_t valueBytes = 0, gradientBytes = 0;

  double seconds() const { return valueSeconds + gradientSeconds; }
  int64_t bytes() const { return valueBytes + gradientBytes; }
};

class StepPlanner {
public:
  /// `graphs` are those of the ranges, one by one, orchestrated as such, and must
  /// outlive this object; all options are known. With `merges`, ranges that are not
  /// worth their switch in a step merge upwards, by the planners' costs.
  /// `regionBytes`: what each rank has for the phases of a step beside home's
  /// parameters.
  StepPlanner(std::vector<const PlannedGraph *> graphs, LengthRanges ranges,
              Orchestration orchestration, bool merges,
              std::vector<int64_t> regionBytes);

  /// Of a range, by which the table of switches numbers graphs, too.
  const PlannedGraph &graph(int range) const { return *graphs_[range]; }
  const PlannedGraph &home() const { return graph(orchestration_.home()); }
  const LengthRanges &ranges() const { return ranges_; }
  /// Of the ranges, as a step comes to them.
  const std::vector<int> &order() const { return orchestration_.order; }
  const std::vector<int64_t> &regionBytes() const { return regionBytes_; }
  const SwitchTable &switches() const { return orchestration_.switches; }

  /// Deals, plans and proves a mini-batch of these lengths with so many targets.
  /// `update`: with the update behind it. Training makes gradients, evaluation
  /// losses alone, without merging.
  StatusOr<VerifiedStep> plan(const std::vector<int64_t> &lengths,
                              int64_t targets, bool trains, bool update) const;

  /// Of all switches of a step.
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
