//===- ComputeOrder.h - Orders compute without exchanges ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A program is made in two steps: first the order in which a rank computes,
// then the exchanges in between (DynaPipe, sections 5 and 6). The result of the
// first step can be read from any plan. Loads and calls of layer functions give
// the items of every stage and the modes of its layers. So communication can be
// ordered again for any plan, whatever its origin.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_COMPUTEORDER_H
#define DYNA_RUNTIME_PLANNER_COMPUTEORDER_H

#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

/// Removes all instructions that are not `isCompute`, and all places.
void keepCompute(plan::Plan &plan);

struct ComputeOrder {
  bool trains = true;
  /// True if gradients of weights are computed apart from those of inputs.
  bool splitsBackward = false;
  std::vector<StageOrders> replicas; ///< orders without times
  /// Modes of each layer; by the plan's number of the micro-batch.
  std::vector<RecomputeModes> modes;
};

/// Reads the order from the programs of each stage's first shard. The schedule in
/// `options` defines the items. The programs say if backward is split. If a
/// micro-batch does not pass every stage of its replica once, the failure names rank
/// and micro-batch. Other faults of programs are not checked. The replicas of the
/// micro-batches must be the graph's. Linear in the instructions.
StatusOr<ComputeOrder> readComputeOrder(const ExecutableGraph &graph,
                                        const plan::Plan &plan,
                                        const PlanOptions &options);

/// Removes items without instructions: weight gradients of stages on which no layer
/// computes them apart.
void dropEmptyItems(const ExecutableGraph &graph, const PlanOptions &options,
                    StageOrders &orders);

/// Fails if `plan` and `ordered` do not compute the same instructions in the same
/// order on every rank. The failure names the first that differs.
Status checkSameCompute(const plan::Plan &plan, const plan::Plan &ordered);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_COMPUTEORDER_H
