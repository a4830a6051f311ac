//===- Orchestrate.cpp - Chooses home, the order of graphs, switches ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/Orchestrate.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/switch/SwitchTimes.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace dyna {

SwitchMaker switchMaker(const SwitchNetwork &network,
                        const SwitchOptions &options) {
  return {[network, options](const std::vector<SwitchTensor> &tensors) {
            return planSwitch(tensors, network, options);
          },
          [network](const GraphSwitch &made) {
            return timesOf(made.tensors, made.plan, network).seconds;
          }};
}

double SwitchSeconds::of(const std::vector<int> &phases) const {
  double seconds = 0;
  int before = home;
  for (int graph : phases)
    if (graph != home) {
      seconds += values[before][graph] + gradients[graph];
      before = graph;
    }
  return seconds;
}

SwitchSeconds
timeSwitches(const SwitchTable &table,
             const std::function<double(const GraphSwitch &)> &seconds) {
  const int count = table.graphs();
  SwitchSeconds all;
  all.home = table.home();
  all.values.assign(count, std::vector<double>(count, 0));
  all.gradients.assign(count, 0);
  for (int to = 0; to < count; ++to) {
    if (to == table.home())
      continue;
    for (int before = 0; before < count; ++before)
      if (before != to)
        all.values[before][to] = seconds(table.values(before, to));
    all.gradients[to] = seconds(table.gradients(to));
  }
  return all;
}

std::vector<int64_t>
parameterBytes(const std::vector<const ExecutableGraph *> &graphs, int home) {
  std::vector<std::vector<HeldParameters>> others;
  for (size_t g = 0; g < graphs.size(); ++g)
    if (static_cast<int>(g) != home)
      others.push_back(heldOf(*graphs[home], *graphs[g]));
  std::vector<int64_t> bytes;
  for (int rank = 0; rank < graphs[home]->ranks(); ++rank) {
    std::vector<HeldParameters> own;
    for (const auto &held : others)
      own.push_back(held[rank]);
    bytes.push_back(persistentLayout(graphs[home]->rankView(rank)).bytes +
                    mostSideBySide(own));
  }
  return bytes;
}

namespace {

/// Finds the shortest path from home through all other graphs. Its states are
/// the set of graphs that had their phase and the last of them (Held and Karp,
/// 1962).
class OrderSearch {
public:
  OrderSearch(const std::vector<std::vector<double>> &seconds, int home)
      : seconds_(seconds), home_(home),
        count_(static_cast<int>(seconds.size())) {
    const size_t sets = size_t{1} << count_;
    least_.assign(sets * count_, unknown);
  }

  std::vector<int> order() {
    std::vector<int> order;
    const int all = (1 << count_) - 1;
    for (int left = all & ~(1 << home_), last = home_; left != 0;) {
      last = next(left, last);
      order.push_back(last);
      left &= ~(1 << last);
    }
    order.push_back(home_);
    return order;
  }

private:
  static constexpr double unknown = -1;

  /// Returns the next graph after `last` with these graphs left: the first of
  /// the best.
  int next(int left, int last) {
    int best = -1;
    double bestSeconds = std::numeric_limits<double>::infinity();
    for (int graph = 0; graph < count_; ++graph)
      if (left >> graph & 1)
        if (double seconds =
                seconds_[last][graph] + rest(left & ~(1 << graph), graph);
            seconds < bestSeconds) {
          best = graph;
          bestSeconds = seconds;
        }
    return best;
  }

  double rest(int left, int last) {
    if (left == 0)
      return 0;
    double &least = least_[static_cast<size_t>(left) * count_ + last];
    if (least == unknown) {
      const int graph = next(left, last);
      least = seconds_[last][graph] + rest(left & ~(1 << graph), graph);
    }
    return least;
  }

  const std::vector<std::vector<double>> &seconds_;
  const int home_, count_;
  std::vector<double> least_; ///< by what is left, then the last
};

Status checkGraphs(const std::vector<const ExecutableGraph *> &graphs,
                   const OrchestrateOptions &options) {
  if (graphs.empty())
    return Status::invalidArgument("there is no strategy to train with");
  const int count = static_cast<int>(graphs.size());
  if (options.home >= count)
    return Status::invalidArgument(formatText(
        "strategy %d is none of the %d there are", options.home, count));
  if (options.searchOrder && count > maxOrderedGraphs)
    return Status::invalidArgument(
        formatText("the order of %d strategies is to be chosen, but that is "
                   "done for at most %d",
                   count, maxOrderedGraphs));
  return checkSwitched(graphs);
}

/// Chooses order and switches for a given home.
StatusOr<Orchestration>
settle(const std::vector<const ExecutableGraph *> &graphs, int home,
       const SwitchMaker &maker, bool searchOrder) {
  Orchestration made;
  made.parameterBytes = parameterBytes(graphs, home);
  DYNA_ASSIGN_OR_RETURN(made.switches,
                        SwitchTable::create(graphs, home, maker.plan));
  made.seconds = timeSwitches(made.switches, maker.seconds);
  const int count = made.switches.graphs();
  if (searchOrder) {
    made.order = OrderSearch(made.seconds.values, home).order();
    return made;
  }
  for (int graph = 0; graph < count; ++graph)
    if (graph != home)
      made.order.push_back(graph);
  made.order.push_back(home);
  return made;
}

} // namespace

StatusOr<Orchestration>
orchestrate(const std::vector<const ExecutableGraph *> &graphs,
            const SwitchMaker &maker, const OrchestrateOptions &options) {
  DYNA_RETURN_IF_ERROR(checkGraphs(graphs, options));
  if (options.home >= 0)
    return settle(graphs, options.home, maker, options.searchOrder);
  std::vector<int64_t> fullest;
  for (size_t home = 0; home < graphs.size(); ++home) {
    const auto bytes = parameterBytes(graphs, static_cast<int>(home));
    fullest.push_back(*std::max_element(bytes.begin(), bytes.end()));
  }
  const auto limit =
      static_cast<double>(*std::min_element(fullest.begin(), fullest.end())) *
      equalHomeMemory;
  std::optional<Orchestration> best;
  for (size_t home = 0; home < graphs.size(); ++home) {
    if (static_cast<double>(fullest[home]) > limit)
      continue;
    DYNA_ASSIGN_OR_RETURN(auto made, settle(graphs, static_cast<int>(home),
                                            maker, options.searchOrder));
    if (!best ||
        made.switchSeconds(made.order) < best->switchSeconds(best->order))
      best = std::move(made);
  }
  return std::move(*best);
}

} // namespace dyna
