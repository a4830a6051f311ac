//===- SwitchTable.h - The ways between the graphs of a run -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All switches that steps over some graphs may need: to every graph but home
// from home alone, or from home and any other graph; and from each its gradients
// home. What a graph reads where it lies at home does not move (ValuesAtHome.h).
// They depend on the graphs alone and are made once; plans name them by the
// graphs of their phases.
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

/// What moves, and how.
struct GraphSwitch {
  std::vector<SwitchTensor> tensors;
  SwitchPlan plan;

  /// Verifies a plan of these tensors, and works out what each of `ranks` ranks does.
  /// `parameters` is the number of parameters of the model.
  static StatusOr<GraphSwitch> create(std::vector<SwitchTensor> tensors,
                                      SwitchPlan plan, int ranks,
                                      int parameters);

  /// Returns the bytes that ranks send to other ranks. Data that is passed on counts
  /// each time.
  int64_t sentBytes() const;
  int buckets() const { return static_cast<int>(plan.buckets.size()); }

  /// The switch as one rank sees it.
  struct Side {
    /// In each bucket, what it sends, gets, or copies from place to place, by
    /// number in the bucket.
    std::vector<std::vector<int>> transfers;
    /// By parameter, the buckets that bring a part of it here.
    std::vector<std::vector<int>> arrivals;
    /// By bucket, the parameters of which it sends, or places elsewhere, what it
    /// had before.
    std::vector<std::vector<int>> sent;
    /// By bucket, whether other ranks have a part in what it does.
    std::vector<char> meets;
    /// Memory for what it passes on: bytes, and where that of each bucket begins.
    /// Every box begins at a multiple of the alignment.
    std::vector<int64_t> passed;
    int64_t passedBytes = 0;
    /// The same for all that other ranks send it to keep, for who has to put it
    /// aside.
    std::vector<int64_t> got;
    int64_t gotBytes = 0;

    bool takesPart(int bucket) const { return !transfers[bucket].empty(); }
  };
  std::vector<Side> sides; ///< by rank

  /// The ranks that start a bucket together.
  std::vector<int> ranksThatMeet(int bucket) const;
};

/// Returns the parameters of a model in the order in which its layers first use them.
std::vector<int> parametersByFirstUse(const Model &model);

/// What the layers of graph `to` read, where it is up to date: at home the rows
/// that each rank updates, in the graph before, unless null, all that it has.
std::vector<SwitchTensor> valueTensors(const ExecutableGraph &home,
                                       const ExecutableGraph *before,
                                       const ExecutableGraph &to);
/// The reduced gradients of a graph, and where home adds them: of every group of
/// ranks that sum a part, one member gets each element.
std::vector<SwitchTensor> gradientTensors(const ExecutableGraph &from,
                                          const ExecutableGraph &home);

/// Whether a step can have phases of all of them: as many ranks, and no two alike.
Status checkSwitched(const std::vector<const ExecutableGraph *> &graphs);

class SwitchTable {
public:
  /// Plans the switch of some tensors.
  using Make =
      std::function<StatusOr<SwitchPlan>(const std::vector<SwitchTensor> &)>;
  /// Graphs of one model and as many ranks, no two alike, which must outlive the
  /// table; what `make` plans is checked. Quadratic in the number of graphs.
  static StatusOr<SwitchTable>
  create(const std::vector<const ExecutableGraph *> &graphs, int home,
         const Make &make);

  /// Returns the table of a run with one graph, which has no switches. The graph must
  /// outlive it.
  static SwitchTable ofOne(const ExecutableGraph &graph);

  /// One of the switches, graphs by their numbers.
  struct Way {
    int graph = 0;   ///< the values of which come, or whose gradients go home
    int before = -1; ///< of values: the graph of the phase before; -1: none
    bool ofGradients = false;
  };
  using MakeWay = std::function<StatusOr<SwitchPlan>(
      const Way &, const std::vector<SwitchTensor> &)>;
  /// The same, for who needs to know which switch it is.
  static StatusOr<SwitchTable>
  createWays(const std::vector<const ExecutableGraph *> &graphs, int home,
             const MakeWay &make);

  int graphs() const { return static_cast<int>(graphs_.size()); }
  const ExecutableGraph &graph(int index) const { return *graphs_[index]; }
  int home() const { return home_; }
  /// By the name in a plan; -1 if there is none.
  int find(const std::string &name) const;
  /// Of all, for people.
  std::string names() const;

  /// To a graph other than home; `before` is the graph of the phase before, -1
  /// for the first phase.
  const GraphSwitch &values(int before, int to) const {
    return values_[before < 0 ? home_ : before][to];
  }
  const GraphSwitch &gradients(int from) const { return gradients_[from]; }

  const HeldParameters &held(int graph, int rank) const {
    return held_[graph][rank];
  }

  /// Of a phase of a step, whose graphs are in the table.
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
