//===- BackwardOrder.h - Orders backwards of chains -----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Micro-batches that follow each other (`PipelineProblem::previous`), such as slices of a
// sample, run backward in reverse. So the first backward of such a chain has to wait for
// the last of its forwards. Schedules that go by numbers read here in which order
// backwards come, and how many forwards each of them needs.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SCHEDULES_BACKWARDORDER_H
#define DYNA_RUNTIME_PLANNER_SCHEDULES_BACKWARDORDER_H

#include "runtime/planner/order/schedules/PipelineProblem.h"

#include <vector>

namespace dyna {

struct BackwardOrder {
  /// Micro-batches in the order of their backwards. A chain comes when its last forward
  /// has come; forwards have the order of numbers.
  std::vector<int> sequence;
  /// By place in the sequence: forwards that the last stage of a pipeline runs before
  /// this backward. At most one forward lies between two backwards. Without chains the
  /// number is one more than the place.
  std::vector<int> forwards;
  /// Ends of *units*: the shortest runs of micro-batches that have whole chains. In the
  /// sequence, a unit has the same places as its micro-batches.
  std::vector<int> unitEnds;

  /// O(micro-batches). Micro-batches that follow each other in a circle, which
  /// StageGraph::check refuses, come last.
  explicit BackwardOrder(const PipelineProblem &problem);
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SCHEDULES_BACKWARDORDER_H
