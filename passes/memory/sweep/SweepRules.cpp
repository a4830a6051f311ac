//===- SweepRules.cpp - Computes costs and legality of sweeps -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/sweep/RowGroups.h"
#include <algorithm>
#include <set>

namespace mlir::dyna {

namespace {

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

/// Returns true if the row-wise ops may share a sweep, ignoring other ops.
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

} // namespace

bool isLegal(const FusionGraph &graph, const std::vector<FusionUnit> &units) {
  std::set<int> done;
  // List each unit's leader first, then its rows in order.
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
