//===- Orchestrate.h - Chooses home, the order of graphs, switches --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A run with several graphs has a *home* graph (StepPlan.h), an order of phases and
// switches between them. A rank holds
//
//     of home     values, masters, gradients, moments, at all times
//     of others   values and gradients, which come and go with their phase
//
// So the choice of home decides how much the fullest rank holds: ZeRO splits the
// state over more ranks. The durations of switches depend on home too, because with
// ZeRO only rows are up to date on a rank of home.
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

/// Plans switches and estimates their durations.
struct SwitchMaker {
  SwitchTable::Make plan;
  /// Returns the seconds of a switch that `plan` made.
  std::function<double(const GraphSwitch &)> seconds;
};

/// Returns a maker that uses planSwitch and timesOf.
SwitchMaker switchMaker(const SwitchNetwork &network,
                        const SwitchOptions &options = {});

struct OrchestrateOptions {
  /// Searches the order of graphs other than home. By default they keep the order in
  /// which they were given.
  bool searchOrder = false;
  /// Required home; -1: chosen.
  int home = -1;
};

/// Durations of the switches of a table.
struct SwitchSeconds {
  int home = 0;
  /// Seconds of values, by `[home or the graph before][to]`, and of gradients from each
  /// graph to home.
  std::vector<std::vector<double>> values;
  std::vector<double> gradients;

  /// Returns the seconds of all switches of a step with phases of these graphs in this
  /// order. Each has its values and its gradients switched. Home's phase is always the
  /// last one and may be left out.
  double of(const std::vector<int> &phases) const;
};

/// Computes them with the durations that `seconds` returns.
SwitchSeconds
timeSwitches(const SwitchTable &table,
             const std::function<double(const GraphSwitch &)> &seconds);

/// Graphs are numbered as they were given.
struct Orchestration {
  /// Graphs in the order of their phases; home is the last.
  std::vector<int> order;
  /// Bytes of parameters and their state that each rank holds at one time.
  std::vector<int64_t> parameterBytes;
  SwitchTable switches;
  SwitchSeconds seconds;

  int home() const { return order.back(); }
  double switchSeconds(const std::vector<int> &phases) const {
    return seconds.of(phases);
  }
};

/// Returns the most bytes of parameters and their state on each rank at one time, for
/// any order of phases. These are home's, with masters and moments, and two other
/// graphs side by side (StepMemory.h). O(graphs ranks parameters).
std::vector<int64_t>
parameterBytes(const std::vector<const ExecutableGraph *> &graphs, int home);

/// Homes whose fullest ranks need at most this times the least memory count as equal,
/// so that padding does not decide.
constexpr double equalHomeMemory = 1.01;
/// Largest number of graphs whose orders are searched.
constexpr int maxOrderedGraphs = 16;

/// Chooses home, the order of phases and the switches. Home is the graph whose fullest
/// rank holds least. Of equals, the one with the shortest switches in a step with all
/// phases wins, then the first one. Of orders, the one with the shortest switches wins,
/// then the first one.
///
/// `graphs` lists graphs of one model and equal numbers of ranks, no two alike, in the
/// order of their phases. They must outlive the result. Fails if they are not such, or
/// if a switch cannot be planned. Takes a SwitchTable::create for each home that is
/// compared, and O(2^graphs graphs^2) with `searchOrder`.
StatusOr<Orchestration>
orchestrate(const std::vector<const ExecutableGraph *> &graphs,
            const SwitchMaker &maker, const OrchestrateOptions &options = {});

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ORCHESTRATE_H
