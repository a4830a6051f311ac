//===- StepGraphs.h - Holds the graphs that share a step --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Each strategy of a step has a graph, a planner and options. All of them share the
// memory of a rank. Runs use this file, and so do tools that report what a run would
// do.
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

/// A graph with its planner and options.
struct PlannedGraph {
  std::string name; ///< name of its strategy; may be empty
  std::unique_ptr<ExecutableGraph> graph;
  std::unique_ptr<Planner> planner;
  PlanOptions options;
  int64_t microBatches = 1; ///< full micro-batches of one replica in one step
  /// True if no flag gives the size of micro-batches. They then adapt to memory.
  bool isSizeOpen = false;
};

/// Creates the graph of a request, which names its strategy. The notes of its policy
/// are appended to `notes`.
StatusOr<PlannedGraph> planGraph(const CostModel &costs,
                                 const PlanRequest &request,
                                 std::vector<std::string> &notes);

/// Fails if the strategies of ranges do not have equal numbers of ranks, and names two.
/// `strategies` are the ones that the ranges number.
Status checkEqualRanks(const LengthRanges &ranges,
                       const std::vector<Strategy> &strategies);

/// The graphs of the steps of a run: one for each range of lengths. One of them is home,
/// and switches lead from one to another (Orchestrate.h). A run with one strategy has one
/// graph, for samples of all lengths (LengthRanges::ofAll), and no switches.
class StepGraphs {
public:
  /// Takes the graphs, in the order of `ranges`, and chooses home and the switches.
  /// Fails as `orchestrate`.
  static StatusOr<std::unique_ptr<StepGraphs>>
  create(LengthRanges ranges, std::vector<PlannedGraph> graphs);
  StepGraphs(const StepGraphs &) = delete;

  int count() const { return static_cast<int>(graphs_.size()); }
  bool areSeveral() const { return count() > 1; }
  /// Graphs in the order of ranges. The table of switches has the same numbers.
  std::vector<PlannedGraph> &graphs() { return graphs_; }
  const std::vector<PlannedGraph> &graphs() const { return graphs_; }
  const PlannedGraph &graph(int range) const { return graphs_[range]; }
  const LengthRanges &ranges() const { return ranges_; }
  const Orchestration &orchestration() const { return orchestration_; }
  const SwitchTable &switches() const { return orchestration_.switches; }
  const PlannedGraph &home() const { return graphs_[orchestration_.home()]; }
  bool isHome(const PlannedGraph &graph) const { return &graph == &home(); }
  /// Returns the graph of the longest samples.
  const PlannedGraph &ofLongest() const {
    return graphs_[ranges_.byLength().back()];
  }

  /// Returns the parameters and their state that a graph holds.
  Persistent persistentOf(const PlannedGraph &graph, bool training) const;
  /// Returns the options of a graph's plans as phases of the step.
  PlanOptions optionsOf(const PlannedGraph &graph) const;
  /// Returns the bytes of the parameters and their state that a rank of a graph holds.
  int64_t bytesOf(const PlannedGraph &graph, int rank, bool training) const;
  /// Returns the bytes of home's parameters and their state on a rank.
  int64_t homeBytes(int rank, bool training) const;
  /// Returns the most bytes of all parameters on a rank at one time if phases take turns
  /// (PlacePhases.h).
  int64_t heldBytes(int rank, bool training) const;
  /// Returns the most bytes that any rank then holds beside the parameters and
  /// micro-batches of `graph`.
  int64_t heldBeside(const PlannedGraph &graph, bool training) const;

private:
  StepGraphs(LengthRanges ranges, std::vector<PlannedGraph> graphs,
             Orchestration orchestration)
      : ranges_(std::move(ranges)), graphs_(std::move(graphs)),
        orchestration_(std::move(orchestration)) {}

  LengthRanges ranges_;
  std::vector<PlannedGraph> graphs_;
  Orchestration orchestration_; ///< of these graphs
};

/// Limits micro-batches to what a rank of `rankBytes` bytes holds beside the other
/// graphs, if `request` leaves their size open. `graph`, one of `graphs`, was made by
/// `request`. If
/// nothing fits, the size does not change; sizing the regions then says what is
/// missing.
Status limitMicroBatches(const StepGraphs &graphs, PlannedGraph &graph,
                         PlanRequest request, bool training, int64_t rankBytes,
                         std::vector<std::string> &notes);

/// Returns the tokens of the longest sample that a run takes under `graph`, which has
/// the longest samples of a step. The model's positions limit it, or the tokens of a
/// micro-batch if the model has no positions. A rank of `rankBytes` (-1: no limit) must
/// have room for such a sample alone in its micro-batch.
StatusOr<int64_t> longestSampleOf(const StepGraphs &graphs,
                                  const PlannedGraph &graph, bool training,
                                  int64_t rankBytes);

/// Sets the longest sample once it is known. No graph then keeps room for longer samples
/// than its range has. Fails if no range has such samples.
Status setLongestSample(StepGraphs &graphs, int64_t longest);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPGRAPHS_H
