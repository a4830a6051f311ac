//===- Orchestrate.h - How the graphs of a run take turns -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Which of a run's graphs is *home* (StepPlan.h), in which order their phases
// follow each other, and by which switches. A rank has
//
//     of home     values, masters, gradients, moments, at all times
//     of others   values and gradients, which come and go with their phase
//
// so that the choice of home decides what the fullest rank holds: with ZeRO the
// state is dealt to more ranks than without. Switches between the same graphs
// take different times from one home to another, too, since with ZeRO what is up
// to date at home are rows.
//
//     graphs              a: dp=4,zero=1   b: dp=2,tp=2   c: tp=4
//     fullest rank        a: 100 MiB       b: 140 MiB     c: 112 MiB
//     home a, order       b c a
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_ORCHESTRATE_H
#define DYNA_RUNTIME_PLANNER_ORCHESTRATE_H

#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/switch/PlanSwitch.h"

#include <functional>

namespace dyna {

/// How switches are made, and what they take.
struct SwitchMaker {
  SwitchTable::Make plan;
  /// Of a switch that `plan` made.
  std::function<double(const GraphSwitch &)> seconds;
};

/// By planSwitch, in the time that timesOf says.
SwitchMaker switchMaker(const SwitchNetwork &network,
                        const SwitchOptions &options = {});

struct OrchestrateOptions {
  /// Whether the others may come in any order; otherwise in that in which they
  /// were given.
  bool searchOrder = false;
  /// The home there must be, for who knows it; -1: chosen.
  int home = -1;
};

/// What the switches of a table take.
struct SwitchSeconds {
  int home = 0;
  /// `[home or the graph before][to]`, and from each graph home.
  std::vector<std::vector<double>> values;
  std::vector<double> gradients;

  /// Of all switches of a step with phases of these graphs in this order: values
  /// to each, and the gradients of each home, one behind the other. Home, whose
  /// phase is the last, whether it has samples or not, may be left out.
  double of(const std::vector<int> &phases) const;
};

/// By `seconds` of each.
SwitchSeconds
timeSwitches(const SwitchTable &table,
             const std::function<double(const GraphSwitch &)> &seconds);

/// Graphs are numbered as they were given.
struct Orchestration {
  /// Graphs in the order of their phases; home is the last.
  std::vector<int> order;
  /// Of each rank: parameters and their state, that are there at one time.
  std::vector<int64_t> parameterBytes;
  SwitchTable switches;
  SwitchSeconds seconds;

  int home() const { return order.back(); }
  double switchSeconds(const std::vector<int> &phases) const {
    return seconds.of(phases);
  }
};

/// Bytes of parameters and their state that are on each rank at one time, at most:
/// home's, with masters and moments, and of others two side by side (StepMemory.h),
/// whatever their order. O(graphs ranks parameters).
std::vector<int64_t>
parameterBytes(const std::vector<const ExecutableGraph *> &graphs, int home);

/// Homes whose fullest ranks need no more than this times the least are as good
/// as each other in memory: paddings decide nothing.
constexpr double equalHomeMemory = 1.01;
/// Orders are searched among no more graphs than this.
constexpr int maxOrderedGraphs = 16;

/// Home is the graph with the least on the fullest rank, of equals that with the
/// least time of switches in a step that has all phases, of equals the first. Of
/// orders the one with the least time, of equals the first as graphs are numbered.
/// The graphs, of one model and as many ranks, no two alike, in the order of
/// their phases, must outlive the answer. Fails where they are not such, and
/// where a switch cannot be planned. As SwitchTable::create for each home that is
/// compared, and O(2^graphs graphs^2) with `searchOrder`.
StatusOr<Orchestration>
orchestrate(const std::vector<const ExecutableGraph *> &graphs,
            const SwitchMaker &maker, const OrchestrateOptions &options = {});

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ORCHESTRATE_H
