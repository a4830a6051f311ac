//===- UnitGraph.h - Merges ops into units without cycles -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_SWEEP_UNITGRAPH_H
#define DYNA_PASSES_MEMORY_SWEEP_UNITGRAPH_H

#include "passes/memory/sweep/FusionGraph.h"
#include "passes/memory/sweep/UnitOrder.h"
#include <utility>

namespace mlir::dyna {

/// The units as nodes of an acyclic graph, kept in an order in which all edges
/// point forward. Merging two units moves units between them (Pearce and Kelly
/// 2006). Either the successors of the earlier unit go behind both, or the
/// predecessors of the later one go in front of both. Paths are searched from
/// both ends, the cheaper first, and only between the two. So a unit with very
/// many uses costs no more than the unit that it is compared with.
class UnitGraph {
public:
  UnitGraph(const FusionGraph &graph, int64_t &steps)
      : graph(graph), steps(steps), unitOf(graph.nodes.size()),
        leaving(graph.nodes.size()), entering(graph.nodes.size()),
        uses(graph.nodes.size()), order(graph.nodes.size(), steps),
        seen(graph.nodes.size()) {
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      unitOf[node] = static_cast<int>(node);
      leaving[node] = graph.nodes[node].results;
      entering[node] = graph.nodes[node].operands;
      for (int value : leaving[node])
        uses[node] += usesOf(value);
    }
    for (const FusionValue &value : graph.values)
      outside.push_back(static_cast<int>(value.consumers.size()));
  }

  int unitOfNode(int node) const { return unitOf[node]; }
  /// Returns the units from first to last.
  std::vector<int> inOrder() const { return order.all(); }
  /// Returns the number of consumers of the value outside of its producer's
  /// unit.
  int outsideConsumers(int value) const { return outside[value]; }

  template <typename Visitor> void forEachSuccessor(int unit, Visitor visit) {
    std::vector<int> &values = leaving[unit];
    size_t kept = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      int value = values[i];
      // Merging has already included the value's last consumer.
      if (outside[value] == 0) {
        uses[unit] -= usesOf(value);
        continue;
      }
      values[kept++] = value;
      for (int consumer : graph.values[value].consumers) {
        ++steps;
        if (unitOf[consumer] != unit)
          visit(unitOf[consumer]);
      }
    }
    values.resize(kept);
  }

  /// Returns a unit on a path from `from` to one of the goals, other than a
  /// direct edge; -1 if there is none. Paths do not go through goals. If the
  /// search takes long, it returns some unit: the answer that forbids the
  /// merge.
  int findDetour(int from, int goalA, int goalB) {
    auto isGoal = [&](int unit) { return unit == goalA || unit == goalB; };
    int latest = order.isBefore(goalA, goalB) ? goalB : goalA;
    if (!order.isBefore(from, latest))
      return -1;
    const int64_t limit = steps + maxSearch;
    startSearch(from, goalA);
    if (goalB != goalA)
      back.push_back(goalB);
    int detour = -1;
    while (detour < 0 && !ahead.empty() && !back.empty()) {
      bool isAhead = aheadIsCheaper();
      int through = take(isAhead ? ahead : back);
      bool isInside = through != from && !isGoal(through);
      auto look = [&](int unit) {
        if (isInside && (isAhead ? isGoal(unit) : unit == from))
          detour = through;
        if (unit != from && !isGoal(unit) && order.isBefore(from, unit) &&
            order.isBefore(unit, latest) && push(unit, isAhead))
          detour = unit;
      };
      if (isAhead)
        forEachSuccessor(through, look);
      else
        forEachPredecessor(through, look);
      if (steps > limit && isInside)
        detour = through;
    }
    return detour;
  }

  /// Returns true if a path leads from one unit to the other.
  bool reaches(int from, int to) {
    return order.isBefore(from, to) &&
           (hasEdge(from, to) || findDetour(from, to, to) >= 0);
  }

  /// Merges two units without a detour between them into one, `into`. `nodes`
  /// are the nodes of `from`.
  void merge(int into, int from, const std::vector<int> &nodes) {
    reorder(into, from);
    steps += static_cast<int64_t>(nodes.size());
    for (int node : nodes)
      unitOf[node] = into;
    append(leaving[into], leaving[from]);
    append(entering[into], entering[from]);
    uses[into] += uses[from];
    uses[from] = 0;
  }

  /// Records that this many more consumers of the value are in its producer's
  /// unit.
  void takeIn(int value, int consumers) { outside[value] -= consumers; }

private:
  /// Steps of one search. A layer with some hundreds of ops takes fewer.
  static constexpr int64_t maxSearch = 8192;

  int64_t usesOf(int value) const {
    return 1 + static_cast<int64_t>(graph.values[value].consumers.size());
  }

  /// Appends the smaller list to the larger one.
  static void append(std::vector<int> &into, std::vector<int> &from) {
    if (into.size() < from.size())
      std::swap(into, from);
    into.insert(into.end(), from.begin(), from.end());
    from = {};
  }

  template <typename Visitor> void forEachPredecessor(int unit, Visitor visit) {
    std::vector<int> &values = entering[unit];
    size_t kept = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      ++steps;
      int producer = graph.values[values[i]].producer;
      if (producer < 0 || unitOf[producer] == unit)
        continue;
      values[kept++] = values[i];
      visit(unitOf[producer]);
    }
    values.resize(kept);
  }

  bool hasEdge(int from, int to) {
    bool isEdge = false;
    if (uses[from] < static_cast<int64_t>(entering[to].size()))
      forEachSuccessor(from, [&](int unit) { isEdge |= unit == to; });
    else
      forEachPredecessor(to, [&](int unit) { isEdge |= unit == from; });
    return isEdge;
  }

  void startSearch(int start, int end) {
    ++search;
    ahead.assign(1, start);
    back.assign(1, end);
    spentAhead = spentBack = 0;
  }

  static int take(std::vector<int> &work) {
    int unit = work.back();
    work.pop_back();
    return unit;
  }

  /// Enters a unit into one of the two searches. Returns true if the other
  /// search has seen it: the unit then lies between the ends.
  bool push(int unit, bool isAhead) {
    const int64_t own = 2 * search + isAhead, other = 2 * search + !isAhead;
    if (seen[unit] == other)
      return true;
    if (seen[unit] != own)
      (isAhead ? ahead : back).push_back(unit);
    seen[unit] = own;
    return false;
  }

  /// Returns true if the search ahead has spent fewer edges than the search
  /// back, with the next unit of each included. Records the edges for the
  /// search that is chosen.
  bool aheadIsCheaper() {
    int64_t nextAhead = spentAhead + uses[ahead.back()];
    int64_t nextBack =
        spentBack + static_cast<int64_t>(entering[back.back()].size());
    bool isAhead = nextAhead < nextBack;
    (isAhead ? spentAhead : spentBack) = isAhead ? nextAhead : nextBack;
    return isAhead;
  }

  /// Gives `into` one of two positions. At the later unit, all successors of
  /// the earlier one move behind it. At the earlier unit, all predecessors of
  /// the later one move in front of it. The search that ends first decides.
  void reorder(int into, int from) {
    int early = order.isBefore(into, from) ? into : from;
    int late = early == into ? from : into;
    startSearch(early, late);
    std::vector<int> behind, front;
    while (!ahead.empty() && !back.empty()) {
      bool isAhead = aheadIsCheaper();
      int through = take(isAhead ? ahead : back);
      if (through != early && through != late)
        (isAhead ? behind : front).push_back(through);
      auto look = [&](int unit) {
        if (order.isBefore(early, unit) && order.isBefore(unit, late))
          push(unit, isAhead);
      };
      if (isAhead)
        forEachSuccessor(through, look);
      else
        forEachPredecessor(through, look);
    }
    bool isLate = ahead.empty();
    std::vector<int> &moved = isLate ? behind : front;
    steps += static_cast<int64_t>(moved.size());
    order.sort(moved);
    for (int unit : moved)
      order.remove(unit);
    order.remove(isLate ? early : late);
    int anchor = order.remove(isLate ? late : early);
    moved.insert(isLate ? moved.begin() : moved.end(), into);
    order.insertBehind(anchor, moved);
  }

  const FusionGraph &graph;
  int64_t &steps;
  std::vector<int> unitOf;
  /// Values that leave a unit and values that it reads; some entries are
  /// outdated.
  std::vector<std::vector<int>> leaving, entering;
  std::vector<int64_t> uses; ///< to look at for all that leaves a unit
  std::vector<int> outside;
  UnitOrder order;
  // State of one search. Units seen by its two ends have twice its number, or
  // that plus one. The lists are the units still to visit, and the numbers the
  // edges that each end has visited.
  std::vector<int64_t> seen;
  std::vector<int> ahead, back;
  int64_t search = 0, spentAhead = 0, spentBack = 0;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_SWEEP_UNITGRAPH_H
