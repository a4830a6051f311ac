//===- StepGraphs.h - The graphs that share a step --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each strategy of a step has a graph, a planner and options, and all have one
// rank's memory between them. What follows from that is here, for runs and for
// tools that say what a run would do.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STEPGRAPHS_H
#define DYNA_RUNTIME_PLANNER_STEPGRAPHS_H

#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/request/LengthRanges.h"
#include "runtime/planner/step/Orchestrate.h"

#include <memory>
#include <string>
#include <vector>

namespace dyna {

/// A graph with what plans for it are made by.
struct PlannedGraph {
  std::string name; ///< of its strategy; empty: not named
  std::unique_ptr<ExecutableGraph> graph;
  std::unique_ptr<Planner> planner;
  PlanOptions options;
  int64_t microBatches = 1; ///< of one replica in one step, if all are full
  /// Nobody said how large micro-batches are: they may be as small as memory asks.
  bool isSizeOpen = false;
};

/// Of a request, which names its strategy; `notes` gets those of its policy.
StatusOr<PlannedGraph> planGraph(const CostModel &costs,
                                 const PlanRequest &request,
                                 std::vector<std::string> &notes);

/// That the strategies of ranges have as many ranks; the failure names two that
/// have not. `strategies` are those that the ranges number.
Status checkEqualRanks(const LengthRanges &ranges,
                       const std::vector<Strategy> &strategies);

/// Home and switches of the graphs of ranges, one by one.
StatusOr<Orchestration>
orchestrateRanges(const LengthRanges &ranges,
                  const std::vector<const PlannedGraph *> &graphs);

/// All graphs of a step, owned by others.
class StepGraphs {
public:
  /// By their ranges, `home` one of them. Without an orchestration nothing is asked
  /// of what several graphs have at one time.
  StepGraphs(std::vector<PlannedGraph *> graphs, int home,
             const Orchestration *orchestration)
      : graphs_(std::move(graphs)), home_(home), orchestration_(orchestration) {
  }

  const std::vector<PlannedGraph *> &graphs() const { return graphs_; }
  PlannedGraph &home() const { return *graphs_[home_]; }
  bool isHome(const PlannedGraph &graph) const { return &graph == &home(); }
  bool areSeveral() const { return graphs_.size() > 1; }
  /// Where there are several.
  const Orchestration &orchestration() const { return *orchestration_; }

  /// What a graph has of the parameters.
  Persistent persistentOf(const PlannedGraph &graph, bool training) const;
  /// How its plans are made as part of the step.
  PlanOptions optionsOf(const PlannedGraph &graph) const;
  /// Bytes that a rank has of home's parameters and their state, all the time.
  int64_t homeBytes(int rank, bool training) const;
  /// What it has of all parameters at one time, at most, where phases take turns
  /// (PlacePhases.h).
  int64_t heldBytes(int rank, bool training) const;
  /// What some rank then has, at most, beside the parameters and micro-batches of
  /// `graph`.
  int64_t heldBeside(const PlannedGraph &graph, bool training) const;

private:
  std::vector<PlannedGraph *> graphs_;
  int home_;
  const Orchestration *orchestration_;
};

/// Where `request`, by which `graph` was made, leaves their size open,
/// micro-batches are no larger than a rank of so many bytes may take beside the
/// other graphs; where nothing fits, they stay as they are, as sizes of regions say
/// what is missing.
Status limitMicroBatches(const StepGraphs &graphs, PlannedGraph &graph,
                         PlanRequest request, bool training, int64_t rankBytes,
                         std::vector<std::string> &notes);

/// Returns the tokens of the longest sample that a run takes under `graph`, which has
/// the longest samples of a step. The model's positions allow so many, or the tokens
/// of a micro-batch if the model has none, and a rank of `rankBytes` (-1: not limited)
/// has room for such a sample alone in its micro-batch.
StatusOr<int64_t> longestSampleOf(const StepGraphs &graphs,
                                  const PlannedGraph &graph, bool training,
                                  int64_t rankBytes);

/// Once the longest sample is known: no graph keeps room for longer samples than its
/// range has. Fails where no range has it.
Status setLongestSample(const StepGraphs &graphs, const LengthRanges &ranges,
                        int64_t longest);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPGRAPHS_H
