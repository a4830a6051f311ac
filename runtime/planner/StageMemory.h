//===- StageMemory.h - What micro-batches hold on their stages --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STAGEMEMORY_H
#define DYNA_RUNTIME_PLANNER_STAGEMEMORY_H

#include "runtime/plan/ExecutableGraph.h"
#include "runtime/planner/PlanOptions.h"
#include "runtime/planner/schedules/PipelineProblem.h"

namespace dyna {

/// Fills in what the micro-batches of these numbers hold on each stage: kept and
/// late blocks, of which all else is little.
void holdBlocks(PipelineProblem &problem, const ExecutableGraph &graph,
                const plan::Plan &plan, const std::vector<int> &microBatches,
                const PlanOptions &options);

/// Fills in the limits of a replica's stages: the least of the dynamic limits of
/// their ranks, less the bytes in `beside` of each rank; and how many
/// micro-batches they may hold.
void limitStages(PipelineProblem &problem, const ExecutableGraph &graph,
                 int replica, const PlanOptions &options,
                 const std::vector<int64_t> &beside);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STAGEMEMORY_H
