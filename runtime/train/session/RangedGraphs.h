//===- RangedGraphs.h - The graphs of --ranges ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a run whose samples go to several strategies by their lengths does with
// mini-batches: steps are planned as StepPlanner.h says, alike on all processes;
// what another process or a file has is proven here; and each phase gets its own
// samples.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_RANGEDGRAPHS_H
#define DYNA_RUNTIME_TRAIN_RANGEDGRAPHS_H

#include "runtime/data/BatchReader.h"
#include "runtime/planner/step/StepPlanner.h"
#include "runtime/train/files/Metrics.h"

#include <vector>

namespace dyna {

/// A step of several graphs, ready to run.
struct PlannedPhases {
  VerifiedStep step;
  std::vector<MiniBatch> batches; ///< of each phase
};

class RangedGraphs {
public:
  /// As StepPlanner's.
  RangedGraphs(std::vector<const PlannedGraph *> graphs, LengthRanges ranges,
               Orchestration orchestration, bool merges,
               std::vector<int64_t> regionBytes)
      : planner_(std::move(graphs), std::move(ranges), std::move(orchestration),
                 merges, std::move(regionBytes)) {}

  const StepPlanner &planner() const { return planner_; }
  const std::vector<int64_t> &regionBytes() const {
    return planner_.regionBytes();
  }

  /// Deals, plans and proves a mini-batch, as StepPlanner::plan.
  StatusOr<PlannedPhases> plan(const MiniBatch &batch, bool trains,
                               bool update) const;
  /// What was planned elsewhere, or before, for a mini-batch.
  StatusOr<PlannedPhases> prove(plan::StepPlan step, const MiniBatch &batch,
                                const UpdateRules &updates) const;
  /// The parts of it that some ranks run.
  StatusOr<PlannedPhases> proveRanks(plan::StepPlan step,
                                     const std::vector<int> &ranks,
                                     const MiniBatch &batch,
                                     const UpdateRules &updates) const;
  /// What each phase of a step was given, for people.
  std::vector<PhaseMetrics> describePhases(const VerifiedStep &step) const;

private:
  const StepPlanner planner_;
};

/// Samples of a mini-batch as one of their own.
MiniBatch takeSamples(const MiniBatch &batch,
                      const std::vector<int64_t> &samples);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_RANGEDGRAPHS_H
