//===- FusionGraph.cpp - Describes the ops that may become sweeps ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/sweep/FusionGraph.h"
#include <set>

using namespace mlir::dyna;

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
