//===- RangedGraphs.h - The graphs of --ranges ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run whose samples go to several strategies by their lengths has a graph, a
// planner and options for each, and the switches between them. Every step is
// dealt to phases and planned here, alike on all processes; what another process
// or a file has is proven here.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_RANGEDGRAPHS_H
#define DYNA_RUNTIME_TRAIN_RANGEDGRAPHS_H

#include "runtime/data/BatchReader.h"
#include "runtime/plan/StepVerifier.h"
#include "runtime/planner/AssignStrategies.h"
#include "runtime/planner/LengthRanges.h"
#include "runtime/planner/Orchestrate.h"
#include "runtime/planner/Planner.h"
#include "runtime/train/Metrics.h"

#include <memory>
#include <vector>

namespace dyna {

/// A graph of a run with what plans for it are made by.
struct RunGraph {
  std::string name; ///< of its strategy; empty: not named
  std::unique_ptr<ExecutableGraph> graph;
  std::unique_ptr<Planner> planner;
  PlanOptions options;
  int64_t microBatches = 1; ///< of one replica in one step, if all are full
};

/// A step of several graphs, ready to run.
struct PlannedPhases {
  VerifiedStep step;
  std::vector<MiniBatch> batches; ///< of each phase
};

class RangedGraphs {
public:
  /// `graphs` are those of the ranges, one by one, and have been orchestrated as
  /// such. They must outlive this object. With `merges`, ranges that are not worth
  /// their switch in a step merge upwards, by the planners' costs. `regionBytes`: what
  /// each rank has for the phases of a step beside home's parameters.
  RangedGraphs(std::vector<const RunGraph *> graphs, LengthRanges ranges,
               Orchestration orchestration, bool merges,
               std::vector<int64_t> regionBytes);

  /// Of a range, by which the table of switches numbers graphs, too.
  const RunGraph &graph(int range) const { return *graphs_[range]; }
  const LengthRanges &ranges() const { return ranges_; }
  const std::vector<int64_t> &regionBytes() const { return regionBytes_; }
  const SwitchTable &switches() const { return orchestration_.switches; }

  /// Deals, plans and proves a mini-batch. `update`: with the update behind it.
  /// Training makes gradients, evaluation losses alone, without merging.
  StatusOr<PlannedPhases> plan(const MiniBatch &batch, bool trains,
                               bool update) const;
  /// What was planned elsewhere, or before, for a mini-batch.
  StatusOr<PlannedPhases> prove(plan::StepPlan step,
                                const MiniBatch &batch) const;
  /// The parts of it that some ranks run.
  StatusOr<PlannedPhases> proveRanks(plan::StepPlan step,
                                     const std::vector<int> &ranks,
                                     const MiniBatch &batch) const;
  /// That the switches of a step take, by the planners' costs.
  double switchSeconds(const VerifiedStep &step) const;
  /// Of them, those of one phase: its values, and its gradients on their way home.
  std::pair<double, double> switchSeconds(const VerifiedStep &step,
                                          int phase) const;
  /// What each phase of a step was given, for people.
  std::vector<PhaseMetrics> describePhases(const VerifiedStep &step) const;

private:
  StatusOr<std::vector<std::vector<int>>>
  assign(const std::vector<int64_t> &lengths, bool trains) const;
  StatusOr<plan::Plan> planPhase(int range, const std::vector<int64_t> &lengths,
                                 int64_t targets, bool trains,
                                 bool update) const;

  const std::vector<const RunGraph *> graphs_;
  const LengthRanges ranges_;
  const Orchestration orchestration_;
  const bool merges_;
  const std::vector<int64_t> regionBytes_; ///< by rank
  const std::unique_ptr<StepEstimates> estimates_;
};

/// Samples of a mini-batch as one of their own.
MiniBatch takeSamples(const MiniBatch &batch,
                      const std::vector<int64_t> &samples);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_RANGEDGRAPHS_H
