//===- StepPlanner.h - Plans the steps of a run ------------------*- C++ -*-===//
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

#include <optional>
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
  /// All options of `graphs` are known, and `graphs` must outlive this object. With
  /// `merges`, ranges that are not worth their switch in a step merge upwards, by the
  /// planners' costs. `regionBytes` has the bytes of each rank for the phases of a step,
  /// beside home's parameters.
  StepPlanner(const StepGraphs &graphs, bool merges,
              std::vector<int64_t> regionBytes);

  const StepGraphs &graphs() const { return graphs_; }
  const PlannedGraph &graph(int range) const { return graphs_.graph(range); }
  const PlannedGraph &home() const { return graphs_.home(); }
  const std::vector<int64_t> &regionBytes() const { return regionBytes_; }

  /// Plans and verifies a mini-batch of these lengths with `targets` targets. With
  /// `trains`, the step computes gradients, and with `update` it ends with the update.
  /// Otherwise it only computes losses, and no ranges merge.
  StatusOr<VerifiedStep> plan(const std::vector<int64_t> &lengths,
                              int64_t targets, bool trains, bool update) const;
  /// Plans and verifies the update alone, with the gradients that a step without update
  /// has left.
  StatusOr<VerifiedStep> planUpdate() const;

  /// Verifies a step that was planned elsewhere, for a mini-batch of these lengths with
  /// `targets` targets. With `mustUpdate`, a step that leaves its gradients is refused.
  StatusOr<VerifiedStep> verify(plan::StepPlan step,
                                const std::vector<int64_t> &lengths,
                                int64_t targets, bool mustUpdate) const;
  /// Verifies the parts of it that some ranks run (VerifiedStep::proveRanks).
  StatusOr<VerifiedStep> verifyRanks(plan::StepPlan step,
                                     const std::vector<int> &ranks,
                                     const std::vector<int64_t> &lengths,
                                     int64_t targets, bool mustUpdate) const;

  /// Returns the seconds of all switches of a step.
  double switchSeconds(const VerifiedStep &step) const;
  PhaseSwitchCosts switchCosts(const VerifiedStep &step, int phase) const;

private:
  StatusOr<std::vector<std::vector<int>>>
  assign(const std::vector<int64_t> &lengths, bool trains) const;
  StatusOr<plan::Plan> planPhase(int range, const std::vector<int64_t> &lengths,
                                 int64_t targets, bool trains,
                                 bool update) const;
  UpdateRules rules(bool mustUpdate) const;

  const StepGraphs &graphs_;
  const std::vector<int64_t> regionBytes_; ///< by rank
  /// For ranges that may merge.
  std::optional<GraphEstimates> estimates_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPPLANNER_H
