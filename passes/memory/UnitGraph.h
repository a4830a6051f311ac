//===- UnitGraph.h - Ops that are merged into units -------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_UNITGRAPH_H
#define DYNA_PASSES_MEMORY_UNITGRAPH_H

#include "passes/memory/RowGroups.h"
#include <algorithm>

namespace mlir::dyna {

/// The units as nodes of a graph without cycles, kept in an order in which all
/// edges point forward. Merging two units reorders what stands between them
/// (Pearce and Kelly 2006), so a search for a path ends where its goal stands.
class UnitGraph {
public:
  UnitGraph(const FusionGraph &graph, int64_t &steps)
      : graph(graph), steps(steps), unitOf(graph.nodes.size()),
        leaving(graph.nodes.size()), place(graph.nodes.size()),
        next(graph.nodes.size()), previous(graph.nodes.size()),
        seen(graph.nodes.size()) {
    int count = static_cast<int>(graph.nodes.size());
    for (int node = 0; node < count; ++node) {
      unitOf[node] = place[node] = node;
      previous[node] = node - 1;
      next[node] = node + 1 < count ? node + 1 : -1;
      leaving[node] = graph.nodes[node].results;
    }
    for (const FusionValue &value : graph.values)
      outside.push_back(static_cast<int>(value.consumers.size()));
  }

  int unitOfNode(int node) const { return unitOf[node]; }
  /// The units from first to last.
  std::vector<int> inOrder() const {
    std::vector<int> units;
    if (next.empty())
      return units;
    int unit = unitOf.front();
    while (previous[unit] >= 0)
      unit = previous[unit];
    for (; unit >= 0; unit = next[unit])
      units.push_back(unit);
    return units;
  }
  /// How many consumers of the value are not in the unit of its producer.
  int outsideConsumers(int value) const { return outside[value]; }
  bool isBefore(int a, int b) const { return place[a] < place[b]; }

  template <typename Visitor> void forEachSuccessor(int unit, Visitor visit) {
    std::vector<int> &values = leaving[unit];
    size_t kept = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      int value = values[i];
      // Merging has taken in its last consumer.
      if (outside[value] == 0)
        continue;
      values[kept++] = value;
      for (int consumer : graph.values[value].consumers) {
        ++steps;
        if (unitOf[consumer] != unit)
          visit(unitOf[consumer]);
      }
    }
    values.resize(kept);
  }

  /// A unit through which a path leads from `from` to one of the goals, beside
  /// the edges to them; -1 if there is none. Goals are not passed through. A
  /// search that takes long ends with the answer that forbids more: some unit.
  int findDetour(int from, int goalA, int goalB) {
    int last = std::max(place[goalA], place[goalB]);
    if (place[from] >= last)
      return -1;
    const int64_t limit = steps + maxSearch;
    startSearch();
    auto push = [&](int unit) {
      if (place[unit] <= last && seen[unit] != search) {
        seen[unit] = search;
        work.push_back(unit);
      }
    };
    forEachSuccessor(from, [&](int unit) {
      if (unit != goalA && unit != goalB)
        push(unit);
    });
    while (!work.empty()) {
      int through = work.back();
      work.pop_back();
      bool found = false;
      forEachSuccessor(through, [&](int unit) {
        found |= unit == goalA || unit == goalB;
        push(unit);
      });
      if (found || steps > limit)
        return through;
    }
    return -1;
  }

  /// Whether a path leads from one unit to the other.
  bool reaches(int from, int to) {
    if (place[from] >= place[to])
      return false;
    bool isEdge = false;
    forEachSuccessor(from, [&](int unit) { isEdge |= unit == to; });
    return isEdge || findDetour(from, to, to) >= 0;
  }

  /// Makes one unit, `into`, of two without a detour between them. `nodes`:
  /// those of `from`.
  void merge(int into, int from, const std::vector<int> &nodes) {
    reorder(into, from);
    for (int node : nodes)
      unitOf[node] = into;
    if (leaving[into].size() < leaving[from].size())
      std::swap(leaving[into], leaving[from]);
    leaving[into].insert(leaving[into].end(), leaving[from].begin(),
                         leaving[from].end());
    leaving[from].clear();
  }

  /// The value has that many more consumers in the unit of its producer.
  void takeIn(int value, int consumers) { outside[value] -= consumers; }

private:
  /// Steps of one search. A layer with some hundreds of ops takes fewer.
  static constexpr int64_t maxSearch = 4096;

  void startSearch() {
    ++search;
    work.clear();
  }

  /// What stands between the two and follows from the earlier one moves behind
  /// the merged unit, all else there in front of it.
  void reorder(int into, int from) {
    int early = isBefore(into, from) ? into : from;
    int late = early == into ? from : into;
    startSearch();
    work.push_back(early);
    while (!work.empty()) {
      int from = work.back();
      work.pop_back();
      forEachSuccessor(from, [&](int unit) {
        if (place[unit] < place[late] && seen[unit] != search) {
          seen[unit] = search;
          work.push_back(unit);
        }
      });
    }
    int before = previous[early], after = next[late];
    std::vector<int> front, behind, places;
    for (int unit = early; unit != after; unit = next[unit]) {
      ++steps;
      places.push_back(place[unit]);
      if (unit != early && unit != late)
        (seen[unit] == search ? behind : front).push_back(unit);
    }
    front.push_back(into);
    front.insert(front.end(), behind.begin(), behind.end());
    for (size_t i = 0; i < front.size(); ++i) {
      place[front[i]] = places[i];
      link(before, front[i]);
      before = front[i];
    }
    link(before, after);
  }
  void link(int unit, int follower) {
    if (unit >= 0)
      next[unit] = follower;
    if (follower >= 0)
      previous[follower] = unit;
  }

  const FusionGraph &graph;
  int64_t &steps;
  std::vector<int> unitOf;
  std::vector<std::vector<int>> leaving; ///< values; some have not left since
  std::vector<int> outside;
  /// Places rise along the list of the units.
  std::vector<int> place, next, previous;
  // Of one search: the units seen have its number.
  std::vector<int> seen, work;
  int search = 0;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_UNITGRAPH_H
