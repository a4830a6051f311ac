//===- FusionGraph.h - Describes the ops that may become sweeps -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_SWEEP_FUSIONGRAPH_H
#define DYNA_PASSES_MEMORY_SWEEP_FUSIONGRAPH_H

#include <cstdint>
#include <vector>

namespace mlir::dyna {

struct FusionValue {
  int producer = -1;          ///< node, or -1: an argument
  int64_t bytesPerRow = 0;    ///< 0: does not have a row per token
  bool returned = false;      ///< needed after the last node
  std::vector<int> consumers; ///< nodes, each once, rising
};

struct FusionNode {
  enum Kind { Other, RowProduct, RowWise } kind = Other;
  int64_t width = 0;         ///< of a row-wise op
  int64_t rows = 0;          ///< names the rows that a row-wise op works on
  bool wholeRows = false;    ///< operands must come from outside of its sweep
  std::vector<int> operands; ///< values
  std::vector<int> results;  ///< values
};

/// The ops of a function in order.
struct FusionGraph {
  std::vector<FusionNode> nodes;
  std::vector<FusionValue> values;

  int addArgument(int64_t bytesPerRow);
  /// Appends a node with one result per entry of `resultBytes`; the results are
  /// the last values. Returns the node.
  int addNode(FusionNode node, const std::vector<int64_t> &resultBytes);
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_SWEEP_FUSIONGRAPH_H
