//===- ComputeOrder.h - What ranks compute, without what they exchange ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Programs are made in two steps: in which order a rank computes, and what it
// exchanges in between (DynaPipe, sections 5 and 6). The first is in a plan as
// well as beside it: loads and calls of layer functions say the items of every
// stage and the modes of its layers, so that communication can be ordered anew for
// a plan whoever made it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_COMPUTEORDER_H
#define DYNA_RUNTIME_PLANNER_COMPUTEORDER_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

/// Leaves of all programs what `isCompute`, and no places.
void keepCompute(plan::Plan &plan);

struct ComputeOrder {
  bool trains = true;
  /// Whether gradients of weights are made apart from those of inputs.
  bool splitsBackward = false;
  std::vector<StageOrders> replicas; ///< without times
  /// By the plan's number of the micro-batch; of layers, by number.
  std::vector<RecomputeModes> modes;
};

/// Of the programs of each stage's first shard. `options` says the schedule,
/// and so of what items consist; whether backward is split, the programs say.
/// Fails where a micro-batch does not pass every stage of its replica once, with
/// rank and micro-batch. What else may be wrong with programs is not looked at.
/// Linear in the instructions. The micro-batches' replicas must be the graph's.
StatusOr<ComputeOrder> readComputeOrder(const ExecutableGraph &graph,
                                        const plan::Plan &plan,
                                        const PlanOptions &options);

/// Takes weight gradients out of the orders of stages where no layer has any
/// apart: an item without instructions is none.
void dropEmptyItems(const ExecutableGraph &graph, const PlanOptions &options,
                    StageOrders &orders);

/// Fails at the first instruction of `plan`'s compute that `ordered` has not in
/// the same place of its own.
Status checkSameCompute(const plan::Plan &plan, const plan::Plan &ordered);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_COMPUTEORDER_H
