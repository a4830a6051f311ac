//===- Turns.h - Orders the work of ranks that share a device ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Under a strategy with `mirror` two ranks share a device. They run one program each, and
// take turns: a rank begins an *item* when all items before it on the device have ended.
// An item is the forward or the backward of a micro-batch on a stage, a run of gradient
// norms, or a run of updates. Items of micro-batches come by slots (ChimeraSlots.h), then
// norms, then updates. Between items a rank exchanges whenever it wants to.
//
// Turns follow from the programs, so plans do not list them. A plan that evaluates has
// none: its ranks run as they can.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_TURNS_H
#define DYNA_RUNTIME_PLAN_TURNS_H

#include "runtime/plan/graph/ExecutableGraph.h"

#include <vector>

namespace dyna {

class Turns {
public:
  struct Item {
    int first = 0, last = 0; ///< instructions of the program
    int turn = 0;            ///< number among the items of the device
  };

  /// Makes no turns. Every rank has its own device.
  Turns() = default;
  /// Reads the items of all programs. O(instructions log instructions).
  Turns(const ExecutableGraph &graph, const plan::Plan &plan);

  /// Returns true if ranks take turns.
  bool any() const { return !items_.empty(); }
  /// Returns the items of a rank, in the order of its program.
  const std::vector<Item> &of(int rank) const {
    static const std::vector<Item> none;
    return any() ? items_[rank] : none;
  }
  /// Returns the number of turns of the device of a rank.
  int count(int rank) const { return any() ? counts_[rank] : 0; }

private:
  std::vector<std::vector<Item>> items_; ///< by rank
  std::vector<int> counts_;              ///< by rank
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_TURNS_H
