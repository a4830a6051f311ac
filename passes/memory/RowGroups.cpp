//===- RowGroups.cpp - Which row-wise ops share a sweep -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/memory/RowGroups.h"
#include <algorithm>
#include <functional>
#include <set>

namespace mlir::dyna {

int FusionGraph::addArgument(int64_t bytesPerRow) {
  FusionValue value;
  value.bytesPerRow = bytesPerRow;
  values.push_back(value);
  return static_cast<int>(values.size()) - 1;
}

int FusionGraph::addNode(FusionNode node,
                         const std::vector<int64_t> &resultBytes) {
  int index = static_cast<int>(nodes.size());
  for (int operand : std::set<int>(node.operands.begin(), node.operands.end()))
    values[operand].consumers.push_back(index);
  for (int64_t bytes : resultBytes) {
    node.results.push_back(addArgument(bytes));
    values.back().producer = index;
  }
  nodes.push_back(std::move(node));
  return index;
}

namespace {

/// Outside operands with rows, each once, and values that leave the sweep.
int64_t trafficOf(const FusionGraph &graph, const std::vector<int> &rows) {
  std::set<int> members(rows.begin(), rows.end()), read;
  int64_t bytes = 0;
  for (int node : rows) {
    for (int operand : graph.nodes[node].operands)
      if (!members.count(graph.values[operand].producer) &&
          read.insert(operand).second)
        bytes += graph.values[operand].bytesPerRow;
    for (int result : graph.nodes[node].results) {
      const FusionValue &value = graph.values[result];
      bool leaves = value.returned;
      for (int consumer : value.consumers)
        leaves |= !members.count(consumer);
      if (leaves)
        bytes += value.bytesPerRow;
    }
  }
  return bytes;
}

/// Bytes per row of the product's results that the sweep reads; 0 if none.
int64_t hotBytes(const FusionGraph &graph, int product,
                 const std::vector<int> &rows) {
  int64_t bytes = 0;
  for (int result : graph.nodes[product].results)
    for (int consumer : graph.values[result].consumers)
      if (std::find(rows.begin(), rows.end(), consumer) != rows.end()) {
        bytes += graph.values[result].bytesPerRow;
        break;
      }
  return bytes;
}

/// Whether the row-wise ops may share a sweep, as far as they alone say.
bool fitTogether(const FusionGraph &graph, const std::vector<int> &rows) {
  std::set<int> members(rows.begin(), rows.end());
  for (int node : rows) {
    if (graph.nodes[node].width != graph.nodes[rows.front()].width ||
        graph.nodes[node].rows != graph.nodes[rows.front()].rows)
      return false;
    for (int operand : graph.nodes[node].operands) {
      const FusionValue &value = graph.values[operand];
      if (members.count(value.producer) &&
          (value.bytesPerRow == 0 || graph.nodes[node].wholeRows))
        return false;
    }
  }
  return true;
}

class Planner {
public:
  explicit Planner(const FusionGraph &graph)
      : graph(graph), unitOf(graph.nodes.size()) {
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      FusionUnit unit;
      if (graph.nodes[node].kind == FusionNode::RowWise)
        unit.rows.push_back(node);
      else
        unit.leader = node;
      units.push_back(unit);
      unitOf[node] = node;
    }
  }

  std::vector<FusionUnit> run() {
    while (mergeBestPair())
      ;
    while (attachBestProduct())
      ;
    return order();
  }

private:
  bool isGone(int unit) const {
    return units[unit].leader < 0 && units[unit].rows.empty();
  }
  bool isSweep(int unit) const { return !units[unit].rows.empty(); }

  template <typename Visitor> void forEachNode(int unit, Visitor visit) const {
    if (units[unit].leader >= 0)
      visit(units[unit].leader);
    for (int node : units[unit].rows)
      visit(node);
  }

  template <typename Visitor>
  void forEachSuccessor(int unit, Visitor visit) const {
    forEachNode(unit, [&](int node) {
      for (int result : graph.nodes[node].results)
        for (int consumer : graph.values[result].consumers)
          if (unitOf[consumer] != unit)
            visit(unitOf[consumer]);
    });
  }

  /// Whether a path leads from one unit to the other through a third.
  bool hasDetour(int from, int to) const {
    std::vector<bool> seen(units.size());
    std::vector<int> work;
    forEachSuccessor(from, [&](int next) {
      if (next != to)
        work.push_back(next);
    });
    while (!work.empty()) {
      int unit = work.back();
      work.pop_back();
      if (unit == to)
        return true;
      if (seen[unit])
        continue;
      seen[unit] = true;
      forEachSuccessor(unit, [&](int next) { work.push_back(next); });
    }
    return false;
  }

  bool areAdjacent(int a, int b) const {
    return !hasDetour(a, b) && !hasDetour(b, a);
  }

  /// The most that standing behind a product can save these rows, of one or
  /// two units not yet merged.
  int64_t bestHotBytes(const std::vector<int> &rows, int unitA,
                       int unitB) const {
    int64_t best = 0;
    for (size_t product = 0; product < graph.nodes.size(); ++product) {
      if (graph.nodes[product].kind != FusionNode::RowProduct)
        continue;
      int64_t bytes = hotBytes(graph, product, rows);
      if (bytes <= best)
        continue;
      if (canLead(product, unitA, unitB) && canLead(product, unitB, unitA))
        best = bytes;
    }
    return best;
  }

  /// No way from the product to the sweep but directly, taking `merged` as a
  /// part of the sweep; and none back.
  bool canLead(int product, int sweep, int merged) const {
    int leader = unitOf[product];
    bool legal = true;
    forEachSuccessor(leader, [&](int next) {
      if (next != sweep && next != merged)
        legal &= !reaches(next, sweep) && !reaches(next, merged);
    });
    return legal && !reaches(sweep, leader);
  }

  bool reaches(int from, int to) const {
    return from == to || hasDetour(from, to) || hasEdge(from, to);
  }
  bool hasEdge(int from, int to) const {
    bool found = false;
    forEachSuccessor(from, [&](int next) { found |= next == to; });
    return found;
  }

  std::vector<int> unionOf(int a, int b) const {
    std::vector<int> rows;
    std::merge(units[a].rows.begin(), units[a].rows.end(),
               units[b].rows.begin(), units[b].rows.end(),
               std::back_inserter(rows));
    return rows;
  }

  int64_t costOf(int unit) const {
    return trafficOf(graph, units[unit].rows) -
           bestHotBytes(units[unit].rows, unit, unit);
  }

  bool mergeBestPair() {
    int64_t bestGain = 0;
    int bestA = -1, bestB = -1;
    for (int a = 0; a < static_cast<int>(units.size()); ++a) {
      if (!isSweep(a))
        continue;
      for (int b = a + 1; b < static_cast<int>(units.size()); ++b) {
        if (!isSweep(b))
          continue;
        std::vector<int> rows = unionOf(a, b);
        // The cheap test first: without shared values there is no gain.
        int64_t saved = trafficOf(graph, units[a].rows) +
                        trafficOf(graph, units[b].rows) -
                        trafficOf(graph, rows);
        if (saved <= bestGain || !fitTogether(graph, rows) ||
            !areAdjacent(a, b))
          continue;
        int64_t gain = costOf(a) + costOf(b) -
                       (trafficOf(graph, rows) - bestHotBytes(rows, a, b));
        if (gain > bestGain) {
          bestGain = gain;
          bestA = a;
          bestB = b;
        }
      }
    }
    if (bestA < 0)
      return false;
    units[bestA].rows = unionOf(bestA, bestB);
    units[bestB].rows.clear();
    for (int node : units[bestA].rows)
      unitOf[node] = bestA;
    return true;
  }

  /// Joins a sweep and a product that feeds it; of equal ones the last pair.
  bool attachBestProduct() {
    int64_t bestBytes = 0;
    int bestSweep = -1, bestProduct = -1;
    for (size_t product = 0; product < graph.nodes.size(); ++product) {
      if (graph.nodes[product].kind != FusionNode::RowProduct ||
          isSweep(unitOf[product]))
        continue;
      for (size_t sweep = 0; sweep < units.size(); ++sweep) {
        if (!isSweep(sweep) || units[sweep].leader >= 0)
          continue;
        int64_t bytes = hotBytes(graph, product, units[sweep].rows);
        if (bytes > 0 && bytes >= bestBytes && canLead(product, sweep, sweep)) {
          bestBytes = bytes;
          bestSweep = sweep;
          bestProduct = product;
        }
      }
    }
    if (bestSweep < 0)
      return false;
    units[unitOf[bestProduct]].leader = -1;
    units[bestSweep].leader = bestProduct;
    unitOf[bestProduct] = bestSweep;
    return true;
  }

  /// A unit is wanted where its last op stood, or earlier if something that was
  /// wanted earlier needs it. Of those that can run, the one wanted first runs.
  std::vector<FusionUnit> order() const {
    int count = static_cast<int>(units.size());
    std::vector<int> wanted(count, -1), missing(count, 0);
    std::function<int(int)> visit = [&](int unit) {
      if (wanted[unit] >= 0)
        return wanted[unit];
      int own = 0;
      forEachNode(unit, [&](int node) { own = std::max(own, node); });
      forEachSuccessor(unit,
                       [&](int next) { own = std::min(own, visit(next)); });
      return wanted[unit] = own;
    };
    std::set<std::pair<int, int>> ready;
    for (int unit = 0; unit < count; ++unit) {
      if (isGone(unit))
        continue;
      visit(unit);
      forEachSuccessor(unit, [&](int next) { ++missing[next]; });
    }
    for (int unit = 0; unit < count; ++unit)
      if (!isGone(unit) && missing[unit] == 0)
        ready.insert({wanted[unit], unit});

    std::vector<FusionUnit> result;
    while (!ready.empty()) {
      int unit = ready.begin()->second;
      ready.erase(ready.begin());
      result.push_back(units[unit]);
      forEachSuccessor(unit, [&](int next) {
        if (--missing[next] == 0)
          ready.insert({wanted[next], next});
      });
    }
    return result;
  }

  const FusionGraph &graph;
  std::vector<FusionUnit> units; ///< no leader and no rows: merged away
  std::vector<int> unitOf;       ///< of each node
};

} // namespace

std::vector<FusionUnit> planSweeps(const FusionGraph &graph) {
  return Planner(graph).run();
}

int64_t sweepTraffic(const FusionGraph &graph,
                     const std::vector<FusionUnit> &units) {
  int64_t bytes = 0;
  for (const FusionUnit &unit : units) {
    bytes += trafficOf(graph, unit.rows);
    if (unit.leader >= 0 && !unit.rows.empty())
      bytes -= hotBytes(graph, unit.leader, unit.rows);
  }
  return bytes;
}

bool isLegal(const FusionGraph &graph, const std::vector<FusionUnit> &units) {
  std::set<int> done;
  // Each unit's leader first, then its rows, in order.
  for (const FusionUnit &unit : units) {
    std::vector<int> nodes;
    if (unit.leader >= 0)
      nodes.push_back(unit.leader);
    nodes.insert(nodes.end(), unit.rows.begin(), unit.rows.end());
    for (int node : nodes) {
      for (int operand : graph.nodes[node].operands) {
        int producer = graph.values[operand].producer;
        if (producer >= 0 && !done.count(producer))
          return false;
      }
      bool isRow = graph.nodes[node].kind == FusionNode::RowWise;
      if (!done.insert(node).second || isRow == (node == unit.leader))
        return false;
    }
    if (!unit.rows.empty() && !fitTogether(graph, unit.rows))
      return false;
    if (unit.leader >= 0 && !unit.rows.empty() &&
        (graph.nodes[unit.leader].kind != FusionNode::RowProduct ||
         hotBytes(graph, unit.leader, unit.rows) == 0))
      return false;
  }
  return done.size() == graph.nodes.size();
}

} // namespace mlir::dyna
