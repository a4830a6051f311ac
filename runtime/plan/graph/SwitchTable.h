//===- SwitchTable.h - Holds all switches between the graphs of a run -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The table has all switches that steps over some graphs may need. Values go to
// every graph but home, from home alone, or from home and any other graph.
// Gradients go home from each. Values that a graph can read at home do not move
// (ValuesAtHome.h). The switches depend on the graphs alone and are made once.
// Plans name them by the graphs of their phases.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_SWITCHTABLE_H
#define DYNA_RUNTIME_PLAN_SWITCHTABLE_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/plan/graph/SwitchPlan.h"
#include "runtime/plan/graph/ValuesAtHome.h"
#include "runtime/plan/program/StepPlan.h"

#include <functional>

namespace dyna {

/// The tensors of a switch, and its plan.
struct GraphSwitch {
  std::vector<SwitchTensor> tensors;
  SwitchPlan plan;

  /// Verifies a plan of these tensors, and computes what each of `ranks` ranks
  /// does. `parameters` is the number of parameters of the model.
  static StatusOr<GraphSwitch> create(std::vector<SwitchTensor> tensors,
                                      SwitchPlan plan, int ranks,
                                      int parameters);

  /// Returns the bytes that ranks send to other ranks. Data that is passed on counts
  /// each time.
  int64_t sentBytes() const;
  int buckets() const { return static_cast<int>(plan.buckets.size()); }

  /// The part of one rank in the switch.
  struct Side {
    /// By bucket, the transfers that it sends, receives, or copies locally, by
    /// their numbers in the bucket.
    std::vector<std::vector<int>> transfers;
    /// By parameter, the buckets that bring a part of it here.
    std::vector<std::vector<int>> arrivals;
    /// By bucket, the parameters whose old values it sends or copies elsewhere.
    std::vector<std::vector<int>> sent;
    /// By bucket, not 0 if other ranks take part in its transfers.
    std::vector<char> meets;
    /// Memory for boxes that it passes on: bytes, and the begin of each
    /// bucket's part. Every box begins at a multiple of the alignment.
    std::vector<int64_t> passed;
    int64_t passedBytes = 0;
    /// Memory for all boxes that other ranks send it to keep, if they must be
    /// stored first.
    std::vector<int64_t> got;
    int64_t gotBytes = 0;

    bool takesPart(int bucket) const { return !transfers[bucket].empty(); }
  };
  std::vector<Side> sides; ///< by rank

  /// Returns the ranks that start a bucket together.
  std::vector<int> ranksThatMeet(int bucket) const;
};

/// Returns the parameters of a model in the order in which its layers first use them.
std::vector<int> parametersByFirstUse(const Model &model);

/// Returns the values that the layers of graph `to` read, with the ranks on
/// which they are up to date. At home these are the rows that each rank
/// updates. In the graph `before`, unless it is null, they are all rows.
std::vector<SwitchTensor> valueTensors(const ExecutableGraph &home,
                                       const ExecutableGraph *before,
                                       const ExecutableGraph &to);
/// Returns the reduced gradients of a graph, and where home adds them. In every
/// group of ranks that sum a part, one member gets each element.
std::vector<SwitchTensor> gradientTensors(const ExecutableGraph &from,
                                          const ExecutableGraph &home);

/// Checks that a step can have phases of all graphs: equal numbers of ranks,
/// and no two alike.
Status checkSwitched(const std::vector<const ExecutableGraph *> &graphs);

class SwitchTable {
public:
  /// Plans the switch of some tensors.
  using Make =
      std::function<StatusOr<SwitchPlan>(const std::vector<SwitchTensor> &)>;
  /// Makes the table. Graphs are of one model and as many ranks, no two alike,
  /// and must outlive the table. Plans of `make` are verified. Quadratic in the
  /// number of graphs.
  static StatusOr<SwitchTable>
  create(const std::vector<const ExecutableGraph *> &graphs, int home,
         const Make &make);

  /// Returns the table of a run with one graph, which has no switches. The graph must
  /// outlive it.
  static SwitchTable ofOne(const ExecutableGraph &graph);

  /// Names one of the switches, by the numbers of graphs.
  struct Way {
    int graph = 0;   ///< target of values, or source of gradients
    int before = -1; ///< for values, the graph before; -1: none
    bool ofGradients = false;
  };
  using MakeWay = std::function<StatusOr<SwitchPlan>(
      const Way &, const std::vector<SwitchTensor> &)>;
  /// Does the same; `make` also gets the name of the switch.
  static StatusOr<SwitchTable>
  createWays(const std::vector<const ExecutableGraph *> &graphs, int home,
             const MakeWay &make);

  int graphs() const { return static_cast<int>(graphs_.size()); }
  const ExecutableGraph &graph(int index) const { return *graphs_[index]; }
  int home() const { return home_; }
  /// Returns the graph with this name in plans; -1 if there is none.
  int find(const std::string &name) const;
  /// Returns the names of all graphs, for people.
  std::string names() const;

  /// Returns the switch to a graph other than home. `before` is the graph of
  /// the phase before; -1 for the first phase.
  const GraphSwitch &values(int before, int to) const {
    return values_[before < 0 ? home_ : before][to];
  }
  const GraphSwitch &gradients(int from) const { return gradients_[from]; }

  const HeldParameters &held(int graph, int rank) const {
    return held_[graph][rank];
  }

  /// Switches of one phase of a step; its graphs are in the table.
  struct PhaseSwitches {
    int graph = 0, before = -1;
    const GraphSwitch *values = nullptr;    ///< null at home
    const GraphSwitch *gradients = nullptr; ///< null at home
  };
  /// Fails (P12) unless all graphs are in the table, none twice, and the last is
  /// home. A table of one graph has steps of one phase, and does not compare names.
  StatusOr<std::vector<PhaseSwitches>>
  switchesOf(const plan::StepPlan &step) const;

private:
  std::vector<const ExecutableGraph *> graphs_;
  int home_ = 0;
  std::vector<std::vector<GraphSwitch>>
      values_; ///< by the graph before, then to
  std::vector<GraphSwitch> gradients_;
  std::vector<std::vector<HeldParameters>> held_; ///< by graph, then rank
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_SWITCHTABLE_H
