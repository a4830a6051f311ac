//===- StageCosts.h - Computes times of stages ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STAGECOSTS_H
#define DYNA_RUNTIME_PLANNER_STAGECOSTS_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanChoice.h"

#include <vector>

namespace dyna {

/// Returns the functions of a layer that a micro-batch passes in a training
/// step. Forward comes first, then those of backward, with the recomputation of
/// `wished`.
std::vector<cost::Direction> trainingPasses(const plan::LayerKind &kind,
                                            plan::Recompute wished, bool split);

/// Ranks of a tensor-parallel group of a stage that are on one node, at most.
int shardsPerNode(const ExecutableGraph &graph, const CostModel &costs,
                  int stage);

/// Returns the load of `tokens` tokens in samples of `length`, all of them in the loss.
/// Only samples that fit whole have pairs.
Load loadOfEqual(int64_t length, int64_t tokens);

/// Returns the seconds of a message of mean size, over the slowest link between stages.
double messageSeconds(const ExecutableGraph &graph, const CostModel &costs,
                      const std::vector<Load> &loads);

/// Returns the seconds of one replica's stages for its micro-batches of these numbers. A
/// plan does not say which tokens have targets, so all of them count. O(micro-batches *
/// (kinds + layers)).
PipelineProblem estimateStages(const ExecutableGraph &graph,
                               const CostModel &costs, const plan::Plan &plan,
                               const std::vector<int> &microBatches,
                               const PlanChoice &choice);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STAGECOSTS_H
