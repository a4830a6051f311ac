//===- RowGroups.cpp - Which row-wise ops share a sweep -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/memory/RowGroups.h"
#include "passes/memory/UnitGraph.h"
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

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
  Planner(const FusionGraph &graph, int64_t &steps)
      : graph(graph), steps(steps), units(graph, steps),
        sweeps(graph.nodes.size()), neighbours(graph.nodes.size()),
        leaders(graph.nodes.size(), -1), readWhole(graph.values.size()) {
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      if (graph.nodes[node].kind != FusionNode::RowWise) {
        leaders[node] = static_cast<int>(node);
        continue;
      }
      Sweep &sweep = sweeps[node];
      sweep.rows.push_back(static_cast<int>(node));
      for (int operand : graph.nodes[node].operands) {
        // One reader, though it may take the value twice.
        sweep.reads.insert({operand, 1});
        int producer = graph.values[operand].producer;
        if (producer >= 0 &&
            graph.nodes[producer].kind == FusionNode::RowProduct)
          sweep.products.insert({producer, mayLead});
        if (graph.nodes[node].wholeRows)
          readWhole[operand] = true;
      }
      sweep.results = graph.nodes[node].results;
    }
  }

  std::vector<FusionUnit> run() {
    for (size_t value = 0; value < graph.values.size(); ++value)
      pairAround(static_cast<int>(value));
    while (!pairs.empty()) {
      Pair pair = pairs.top();
      pairs.pop();
      ++steps;
      if (isCurrent(pair))
        consider(pair);
    }
    attachProducts();
    return order();
  }

private:
  /// Row-wise ops that run as one.
  struct Sweep {
    std::vector<int> rows;
    /// Operands from outside, with the number of ops that take them.
    std::unordered_map<int, int> reads;
    std::vector<int> results;
    /// Products that feed it, each with what keeps it from running directly in
    /// front: an op in between, `neverLeads`, or `mayLead` if that is not
    /// known.
    std::map<int, int> products;
    int version = 0; ///< of its contents
  };

  /// Two sweeps that might become one. `gain` is what that saves or, before
  /// somebody has looked, at most can save.
  struct Pair {
    int64_t gain;
    int a, b;
    int versionA, versionB;
    bool isExact;
    /// The largest gain first, of equal ones the first sweeps.
    bool operator<(const Pair &other) const {
      return std::tuple(gain, -a, -b, isExact) <
             std::tuple(other.gain, -other.a, -other.b, other.isExact);
    }
  };

  /// A value that more sweeps than these use pairs each with so many that
  /// follow it: all pairs would be quadratic.
  static constexpr size_t maxNeighbours = 16;
  /// The product follows from the sweep.
  static constexpr int neverLeads = -2;
  static constexpr int mayLead = -1;

  bool isSweep(int unit) const { return !sweeps[unit].rows.empty(); }

  /// Pairs the sweeps that read or make the value.
  void pairAround(int value) {
    if (graph.values[value].bytesPerRow == 0)
      return;
    std::vector<std::tuple<int64_t, int64_t, int>> users;
    auto add = [&](int node) {
      if (isSweep(node))
        users.push_back(
            {graph.nodes[node].width, graph.nodes[node].rows, node});
    };
    if (graph.values[value].producer >= 0)
      add(graph.values[value].producer);
    for (int consumer : graph.values[value].consumers)
      add(consumer);
    // Those that may be one sweep stand together.
    std::sort(users.begin(), users.end());
    for (size_t i = 0; i < users.size(); ++i)
      for (size_t j = i + 1; j < users.size() && j <= i + maxNeighbours; ++j) {
        int a = std::get<int>(users[i]), b = std::get<int>(users[j]);
        if (neighbours[a].insert({b, -1}).second) {
          neighbours[b].insert({a, -1});
          propose(a, b);
        }
      }
  }

  /// Enters a pair with what its traffic alone can save.
  void propose(int a, int b) {
    if (a > b)
      std::swap(a, b);
    int64_t saved = savedTraffic(a, b);
    if (saved > 0)
      pairs.push({saved, a, b, sweeps[a].version, sweeps[b].version, false});
  }

  /// Whether no path leads from one to the other through a third. What has been
  /// found to lie between two stays there, until it becomes a part of one of
  /// them.
  bool areAdjacent(int a, int b) {
    int detour = units.findDetour(a, b, b);
    if (detour < 0)
      detour = units.findDetour(b, a, a);
    if (detour < 0)
      return true;
    neighbours[a][b] = neighbours[b][a] = nodeOf(detour);
    return false;
  }

  bool isCurrent(const Pair &pair) const {
    return isSweep(pair.a) && isSweep(pair.b) &&
           sweeps[pair.a].version == pair.versionA &&
           sweeps[pair.b].version == pair.versionB;
  }

  /// Merges the pair, or enters it again with what it is worth by now. Merges
  /// elsewhere make paths, never cut one: a pair that is not legal stays so.
  void consider(const Pair &pair) {
    if (!fit(pair.a, pair.b) || !areAdjacent(pair.a, pair.b))
      return;
    int64_t apart = bestHotBytes(pair.a, pair.a) + bestHotBytes(pair.b, pair.b);
    int64_t gain =
        savedTraffic(pair.a, pair.b) - apart + bestHotBytes(pair.a, pair.b);
    if (pair.isExact && gain == pair.gain)
      return merge(pair.a, pair.b);
    if (gain > 0)
      pairs.push({gain, pair.a, pair.b, pair.versionA, pair.versionB, true});
  }

  static size_t sizeOf(const Sweep &sweep) {
    return sweep.reads.size() + sweep.results.size();
  }

  /// What `reader` reads of the value, and the maker writes for it alone.
  int64_t passedBytes(int value, int readers) const {
    const FusionValue &passed = graph.values[value];
    bool isLast = !passed.returned && units.outsideConsumers(value) == readers;
    return passed.bytesPerRow * (isLast ? 2 : 1);
  }

  /// The traffic of both without that of their union.
  int64_t savedTraffic(int a, int b) {
    if (sizeOf(sweeps[a]) > sizeOf(sweeps[b]))
      std::swap(a, b);
    const Sweep &small = sweeps[a], &large = sweeps[b];
    int64_t bytes = 0;
    steps += static_cast<int64_t>(sizeOf(small));
    for (auto [value, readers] : small.reads) {
      int producer = graph.values[value].producer;
      if (producer >= 0 && units.unitOfNode(producer) == b)
        bytes += passedBytes(value, readers);
      else if (large.reads.count(value))
        bytes += graph.values[value].bytesPerRow;
    }
    for (int value : small.results) {
      auto read = large.reads.find(value);
      if (read != large.reads.end())
        bytes += passedBytes(value, read->second);
    }
    return bytes;
  }

  /// Whether the rows may share a sweep, as far as they alone say. Those of
  /// each already do.
  bool fit(int a, int b) {
    const FusionNode &nodeA = graph.nodes[sweeps[a].rows.front()];
    const FusionNode &nodeB = graph.nodes[sweeps[b].rows.front()];
    return nodeA.width == nodeB.width && nodeA.rows == nodeB.rows &&
           mayPass(a, b) && mayPass(b, a);
  }

  /// Whether what `to` takes from `from` may stay in registers.
  bool mayPass(int from, int to) {
    auto mayTake = [&](int value) {
      if (graph.values[value].bytesPerRow == 0)
        return false;
      if (!readWhole[value])
        return true;
      for (int consumer : graph.values[value].consumers) {
        ++steps;
        if (graph.nodes[consumer].wholeRows && units.unitOfNode(consumer) == to)
          return false;
      }
      return true;
    };
    if (sweeps[from].results.size() <= sweeps[to].reads.size()) {
      for (int value : sweeps[from].results)
        if (sweeps[to].reads.count(value) && !mayTake(value))
          return false;
      return true;
    }
    for (auto [value, readers] : sweeps[to].reads) {
      int producer = graph.values[value].producer;
      if (producer >= 0 && units.unitOfNode(producer) == from &&
          !mayTake(value))
        return false;
    }
    return true;
  }

  /// An op of the unit.
  int nodeOf(int unit) const {
    return isSweep(unit) ? sweeps[unit].rows.front() : leaders[unit];
  }

  /// Whether there is no way from the product to the rows of one or two units
  /// but directly, and none back. What one unit says of it stays true, until
  /// the op in between becomes a part of it.
  bool canLead(int product, int a, int b) {
    int leader = units.unitOfNode(product);
    for (int unit : {a, b}) {
      auto found = sweeps[unit].products.find(product);
      if (found == sweeps[unit].products.end()) {
        if (units.reaches(unit, leader))
          return false;
        continue;
      }
      int &between = found->second;
      if (between >= 0 && units.unitOfNode(between) != a &&
          units.unitOfNode(between) != b)
        return false;
      if (between != neverLeads && units.reaches(unit, leader))
        between = neverLeads;
      if (between == neverLeads)
        return false;
    }
    int through = units.findDetour(leader, a, b);
    if (a == b && through >= 0)
      sweeps[a].products[product] = nodeOf(through);
    return through < 0;
  }

  /// Bytes per row of the product's results that the units read.
  int64_t hotBytesOf(int product, int a, int b) const {
    int64_t bytes = 0;
    for (int result : graph.nodes[product].results)
      if (sweeps[a].reads.count(result) || sweeps[b].reads.count(result))
        bytes += graph.values[result].bytesPerRow;
    return bytes;
  }

  /// The most that standing behind a product can save the rows of one unit, or
  /// of two not yet merged.
  int64_t bestHotBytes(int a, int b) {
    int64_t best = 0;
    auto look = [&](int unit) {
      for (auto [product, between] : sweeps[unit].products) {
        ++steps;
        int64_t bytes = hotBytesOf(product, a, b);
        if (bytes > best && canLead(product, a, b))
          best = bytes;
      }
    };
    look(a);
    if (a != b)
      look(b);
    return best;
  }

  void merge(int a, int b) {
    // The smaller goes into the larger; the name is that of the first.
    bool isSwapped = sizeOf(sweeps[a]) < sizeOf(sweeps[b]);
    Sweep &large = sweeps[isSwapped ? b : a],
          &small = sweeps[isSwapped ? a : b];
    int largeUnit = isSwapped ? b : a;
    steps += static_cast<int64_t>(sizeOf(small));
    for (int value : small.results) {
      auto read = large.reads.find(value);
      if (read == large.reads.end())
        continue;
      units.takeIn(value, read->second);
      large.reads.erase(read);
    }
    for (auto [value, readers] : small.reads) {
      int producer = graph.values[value].producer;
      if (producer >= 0 && units.unitOfNode(producer) == largeUnit)
        units.takeIn(value, readers);
      else
        large.reads[value] += readers;
    }
    units.merge(a, b, sweeps[b].rows);
    large.rows.insert(large.rows.end(), small.rows.begin(), small.rows.end());
    large.results.insert(large.results.end(), small.results.begin(),
                         small.results.end());
    for (auto [product, between] : small.products) {
      int &known = large.products.insert({product, between}).first->second;
      if (between == neverLeads || known == mayLead)
        known = between;
    }
    int version = std::max(large.version, small.version) + 1;
    if (isSwapped)
      std::swap(sweeps[a], sweeps[b]);
    sweeps[a].version = version;
    sweeps[b] = Sweep();
    meetNeighbours(a, b);
  }

  /// The neighbours of `gone` become those of `unit`.
  void meetNeighbours(int unit, int gone) {
    neighbours[unit].erase(gone);
    for (auto [other, between] : neighbours[gone]) {
      neighbours[other].erase(gone);
      if (other == unit)
        continue;
      int &known = neighbours[unit].insert({other, -1}).first->second;
      known = std::max(known, between);
    }
    neighbours[gone].clear();
    for (auto &[other, between] : neighbours[unit]) {
      int through = between < 0 ? unit : units.unitOfNode(between);
      ++steps;
      if (through == unit || through == other)
        between = -1;
      neighbours[other][unit] = between;
      if (between < 0)
        propose(unit, other);
    }
  }

  /// Joins sweeps and products that feed them, the most bytes first; of equal
  /// ones the last pair.
  void attachProducts() {
    std::priority_queue<std::tuple<int64_t, int, int>> candidates;
    for (size_t unit = 0; unit < sweeps.size(); ++unit)
      for (auto [product, between] : sweeps[unit].products)
        if (int64_t bytes = hotBytesOf(product, unit, unit))
          candidates.push({bytes, product, static_cast<int>(unit)});
    while (!candidates.empty()) {
      auto [bytes, product, sweep] = candidates.top();
      candidates.pop();
      ++steps;
      if (units.unitOfNode(product) != product || leaders[sweep] >= 0 ||
          !canLead(product, sweep, sweep))
        continue;
      for (int result : graph.nodes[product].results) {
        auto read = sweeps[sweep].reads.find(result);
        if (read != sweeps[sweep].reads.end())
          units.takeIn(result, read->second);
      }
      units.merge(sweep, product, {product});
      leaders[product] = -1;
      leaders[sweep] = product;
    }
  }

  /// A unit is wanted where its last op stood, or earlier if something that was
  /// wanted earlier needs it. Of those that can run, the one wanted first runs.
  std::vector<FusionUnit> order() {
    std::vector<int> wanted(sweeps.size()), missing(sweeps.size());
    std::vector<int> inOrder = units.inOrder();
    for (auto unit = inOrder.rbegin(); unit != inOrder.rend(); ++unit) {
      int own = leaders[*unit];
      for (int node : sweeps[*unit].rows)
        own = std::max(own, node);
      units.forEachSuccessor(*unit, [&](int next) {
        own = std::min(own, wanted[next]);
        ++missing[next];
      });
      wanted[*unit] = own;
    }
    std::set<std::pair<int, int>> ready;
    for (int unit : inOrder)
      if (missing[unit] == 0)
        ready.insert({wanted[unit], unit});

    std::vector<FusionUnit> result;
    while (!ready.empty()) {
      int unit = ready.begin()->second;
      ready.erase(ready.begin());
      std::sort(sweeps[unit].rows.begin(), sweeps[unit].rows.end());
      result.push_back({leaders[unit], sweeps[unit].rows});
      units.forEachSuccessor(unit, [&](int next) {
        if (--missing[next] == 0)
          ready.insert({wanted[next], next});
      });
    }
    return result;
  }

  const FusionGraph &graph;
  int64_t &steps;
  UnitGraph units;
  std::vector<Sweep> sweeps; ///< by unit; empty for other units
  /// By unit: those to compare it with, each with an op that lies between the
  /// two, or -1 where none is known.
  std::vector<std::map<int, int>> neighbours;
  std::vector<int> leaders;    ///< by unit; -1: a sweep alone, or merged away
  std::vector<bool> readWhole; ///< of a value: an op takes it `wholeRows`
  std::priority_queue<Pair> pairs;
};

} // namespace

std::vector<FusionUnit> planSweeps(const FusionGraph &graph, int64_t *steps) {
  int64_t ignored = 0;
  return Planner(graph, steps ? *steps : ignored).run();
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
