//===- RowGroups.cpp - Decides which row-wise ops share a sweep -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/sweep/RowGroups.h"
#include "passes/memory/sweep/UnitGraph.h"
#include <algorithm>
#include <map>
#include <queue>
#include <set>
#include <tuple>
#include <unordered_map>

namespace mlir::dyna {

namespace {

class SweepPlanner {
public:
  SweepPlanner(const FusionGraph &graph, int64_t &steps)
      : graph(graph), steps(steps), units(graph, steps),
        sweeps(graph.nodes.size()), neighbours(graph.nodes.size()),
        waiting(graph.nodes.size()), leaders(graph.nodes.size(), -1),
        readWhole(graph.values.size()) {
    for (size_t node = 0; node < graph.nodes.size(); ++node) {
      if (graph.nodes[node].kind != FusionNode::RowWise) {
        leaders[node] = static_cast<int>(node);
        continue;
      }
      Sweep &sweep = sweeps[node];
      sweep.first = static_cast<int>(node);
      sweep.rows.push_back(static_cast<int>(node));
      for (int operand : graph.nodes[node].operands) {
        // Count one reader, even if it uses the value twice.
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
    for (size_t unit = 0; unit < sweeps.size(); ++unit)
      sweeps[unit].weight = neighbours[unit].size() + 1;
    while (!pairs.empty()) {
      Pair pair = pairs.top();
      pairs.pop();
      ++steps;
      lookAt(pair);
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
    /// Products that feed it, each with the obstacle to run it directly in
    /// front. That is an op in between, `neverLeads`, or `mayLead` if it is not
    /// known.
    std::map<int, int> products;
    int version = 0;   ///< rises whenever the contents change
    int first = 0;     ///< number of its first op, which orders pairs
    size_t weight = 0; ///< ops and neighbours that have come together in it
  };

  /// Known facts about two sweeps that are compared.
  struct Link {
    int between = -1;  ///< an op that lies between them; -1: none is known
    int64_t entry = 0; ///< the number of their last entry in `pairs`
  };

  /// Two sweeps that might become one. `gain` is the saved traffic, or an upper
  /// bound of it until it is computed.
  struct Pair {
    int64_t gain;
    int a, b; ///< first ops
    int versionA, versionB;
    bool isExact;
    int64_t entry;
    /// The largest gain first, of equal ones the first sweeps.
    bool operator<(const Pair &other) const {
      return std::tuple(gain, -a, -b, isExact) <
             std::tuple(other.gain, -other.a, -other.b, other.isExact);
    }
  };

  /// A value that more sweeps than these use pairs each with so many that
  /// follow it: all pairs would be quadratic.
  static constexpr size_t maxNeighbours = 16;
  /// A sweep with more neighbours than these, once merged, is compared again at
  /// once only with those that its smaller part has brought. What it would save
  /// with another is looked at when its old entry comes up.
  static constexpr size_t maxRenewed = 64;
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
    // Ops that may be one sweep become adjacent.
    std::sort(users.begin(), users.end());
    for (size_t i = 0; i < users.size(); ++i)
      for (size_t j = i + 1; j < users.size() && j <= i + maxNeighbours; ++j) {
        auto [width, rows, a] = users[i];
        auto [otherWidth, otherRows, b] = users[j];
        if (width != otherWidth || rows != otherRows)
          break;
        if (!neighbours[a].count(b))
          propose(a, b);
      }
  }

  /// Enters a pair with what its traffic alone can save. Older entries are
  /// void.
  void propose(int a, int b) {
    if (sweeps[a].first > sweeps[b].first)
      std::swap(a, b);
    neighbours[a][b] = neighbours[b][a] = {-1, ++numEntries};
    int64_t saved = savedTraffic(a, b);
    if (saved > 0)
      pairs.push({saved, sweeps[a].first, sweeps[b].first, sweeps[a].version,
                  sweeps[b].version, false, numEntries});
  }

  /// Returns true if no path leads from one to the other through a third unit.
  /// An op that was found between two stays there, until it becomes a part of
  /// one of them.
  bool areAdjacent(int a, int b) {
    int detour = units.findDetour(a, b, b);
    if (detour < 0)
      detour = units.findDetour(b, a, a);
    if (detour < 0)
      return true;
    neighbours[a][b].between = neighbours[b][a].between = nodeOf(detour);
    if (isSweep(detour))
      waiting[detour].push_back({sweeps[a].first, sweeps[b].first});
    return false;
  }

  /// Considers a pair, or enters it anew if one of its sweeps has changed.
  void lookAt(const Pair &pair) {
    int a = units.unitOfNode(pair.a), b = units.unitOfNode(pair.b);
    auto link = neighbours[a].find(b);
    if (link == neighbours[a].end() || link->second.entry != pair.entry ||
        link->second.between >= 0)
      return;
    if (sweeps[a].version == pair.versionA &&
        sweeps[b].version == pair.versionB)
      consider(pair, a, b);
    else
      propose(a, b);
  }

  /// Merges the pair, or enters it again with what it is worth by now. Merges
  /// elsewhere make paths, never cut one: a pair that is not legal stays so.
  void consider(Pair pair, int a, int b) {
    if (!fit(a, b) || !areAdjacent(a, b))
      return;
    int64_t apart = bestHotBytes(a, a) + bestHotBytes(b, b);
    int64_t gain = savedTraffic(a, b) - apart + bestHotBytes(a, b);
    if (pair.isExact && gain == pair.gain)
      return merge(a, b);
    pair.gain = gain;
    pair.isExact = true;
    if (gain > 0)
      pairs.push(pair);
  }

  static size_t sizeOf(const Sweep &sweep) {
    return sweep.reads.size() + sweep.results.size();
  }

  /// Returns the traffic of a value that `readers` read, including the write if
  /// nothing else reads it.
  int64_t passedBytes(int value, int readers) const {
    const FusionValue &passed = graph.values[value];
    bool isLast = !passed.returned && units.outsideConsumers(value) == readers;
    return passed.bytesPerRow * (isLast ? 2 : 1);
  }

  /// Returns the traffic of both minus that of their union.
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

  /// Returns true if the rows of two units may share a sweep, ignoring other
  /// ops. Those of each unit already do.
  bool fit(int a, int b) {
    const FusionNode &nodeA = graph.nodes[sweeps[a].rows.front()];
    const FusionNode &nodeB = graph.nodes[sweeps[b].rows.front()];
    return nodeA.width == nodeB.width && nodeA.rows == nodeB.rows &&
           mayPass(a, b) && mayPass(b, a);
  }

  /// Returns true if values that `to` reads from `from` may stay in registers.
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

  /// Returns an op of the unit.
  int nodeOf(int unit) const {
    return isSweep(unit) ? sweeps[unit].rows.front() : leaders[unit];
  }

  /// Returns true if every path from the product to the rows of one or two
  /// units is direct, and none leads back. A result about one unit stays true
  /// until the op in between becomes a part of it.
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

  /// Returns the most that a place after a product can save for the rows of one
  /// unit, or of two unmerged ones.
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
    // The lighter sweep becomes a part of the heavier one. Of their data, the
    // smaller sets are added to the larger ones. The name is that of the first.
    if (sweeps[a].weight < sweeps[b].weight)
      std::swap(a, b);
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
    large.version = std::max(large.version, small.version) + 1;
    large.first = std::min(large.first, small.first);
    large.weight += small.weight;
    if (isSwapped)
      std::swap(sweeps[a], sweeps[b]);
    sweeps[b] = Sweep();
    meetNeighbours(a, b);
  }

  /// Makes the neighbours of `gone` those of `unit`.
  void meetNeighbours(int unit, int gone) {
    neighbours[unit].erase(gone);
    std::vector<int> met;
    for (auto [other, link] : neighbours[gone]) {
      ++steps;
      neighbours[other].erase(gone);
      if (other == unit)
        continue;
      Link &known = neighbours[unit].insert({other, link}).first->second;
      known.between = std::max(known.between, link.between);
      neighbours[other][unit] = known;
      met.push_back(other);
    }
    neighbours[gone].clear();
    if (neighbours[unit].size() <= maxRenewed) {
      met.clear();
      for (auto [other, link] : neighbours[unit])
        met.push_back(other);
    }
    for (int other : met)
      renew(unit, other);
    wake(unit, gone);
  }

  /// Enters a pair again after one of its two has become larger, unless another
  /// lies between.
  void renew(int unit, int other) {
    ++steps;
    int between = neighbours[unit][other].between;
    int through = between < 0 ? unit : units.unitOfNode(between);
    if (through == unit || through == other)
      propose(unit, other);
  }

  /// Sweeps between which there was `gone`, now a part of `unit`.
  void wake(int unit, int gone) {
    for (auto [nodeA, nodeB] : waiting[gone]) {
      ++steps;
      int a = units.unitOfNode(nodeA), b = units.unitOfNode(nodeB);
      auto link = neighbours[a].find(b);
      if (link == neighbours[a].end() || link->second.between < 0 ||
          units.unitOfNode(link->second.between) != unit)
        continue;
      if (a == unit || b == unit)
        propose(a, b);
      else
        waiting[unit].push_back({nodeA, nodeB});
    }
    waiting[gone] = {};
  }

  /// Joins sweeps and products that feed them, the most bytes first; of equal
  /// ones the last pair.
  void attachProducts() {
    std::priority_queue<std::tuple<int64_t, int, int>> candidates;
    for (size_t unit = 0; unit < sweeps.size(); ++unit)
      for (auto [product, between] : sweeps[unit].products)
        if (int64_t bytes = hotBytesOf(product, unit, unit))
          candidates.push({bytes, product, sweeps[unit].first});
    while (!candidates.empty()) {
      auto [bytes, product, first] = candidates.top();
      candidates.pop();
      int sweep = units.unitOfNode(first);
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

  /// Orders the units. A unit is wanted at the place of its last op, or earlier
  /// if a unit that is wanted earlier needs it. Of those that can run, the one
  /// wanted first runs.
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
    auto insert = [&](int unit) {
      ready.insert({wanted[unit], isSweep(unit) ? sweeps[unit].first : unit});
    };
    for (int unit : inOrder)
      if (missing[unit] == 0)
        insert(unit);

    std::vector<FusionUnit> result;
    while (!ready.empty()) {
      int unit = units.unitOfNode(ready.begin()->second);
      ready.erase(ready.begin());
      std::sort(sweeps[unit].rows.begin(), sweeps[unit].rows.end());
      result.push_back({leaders[unit], sweeps[unit].rows});
      units.forEachSuccessor(unit, [&](int next) {
        if (--missing[next] == 0)
          insert(next);
      });
    }
    return result;
  }

  const FusionGraph &graph;
  int64_t &steps;
  UnitGraph units;
  std::vector<Sweep> sweeps; ///< by unit; empty for other units
  /// By unit: those to compare it with.
  std::vector<std::map<int, Link>> neighbours;
  /// By unit: pairs (first ops) that it has been found to lie between.
  std::vector<std::vector<std::pair<int, int>>> waiting;
  std::vector<int> leaders;    ///< by unit; -1: a sweep alone, or merged away
  std::vector<bool> readWhole; ///< of a value: an op takes it `wholeRows`
  std::priority_queue<Pair> pairs;
  int64_t numEntries = 0;
};

} // namespace

std::vector<FusionUnit> planSweeps(const FusionGraph &graph, int64_t *steps) {
  int64_t ignored = 0;
  return SweepPlanner(graph, steps ? *steps : ignored).run();
}

} // namespace mlir::dyna
