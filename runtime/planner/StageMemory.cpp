//===- StageMemory.cpp - What micro-batches hold on their stages ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/StageMemory.h"

#include "runtime/plan/ProgramBlocks.h"

#include <limits>

namespace dyna {

void holdBlocks(PipelineProblem &problem, const ExecutableGraph &graph,
                const plan::Plan &plan, const std::vector<int> &microBatches,
                const PlanOptions &options) {
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    std::vector<int64_t> &kept = problem.kept.emplace_back();
    std::vector<int64_t> &late = problem.late.emplace_back();
    for (int m : microBatches) {
      Extent extent = extentOf(plan.microBatches[m]);
      int64_t all = 0, left = 0;
      for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
        plan::Recompute mode = nearestMode(view.kind(l), options.modeOf(l, m));
        int64_t bytes = view.keptBytes(l, mode, extent);
        all += bytes;
        if (splitsBackward(view.kind(l)))
          left += bytes + view.lateBytes(l, mode, true, extent);
      }
      kept.push_back(all);
      late.push_back(left);
    }
  }
}

void limitStages(PipelineProblem &problem, const ExecutableGraph &graph,
                 int replica, const PlanOptions &options,
                 const std::vector<int64_t> &beside) {
  problem.mostKept = options.mostKept;
  for (int stage = 0; stage < graph.stages(); ++stage) {
    int64_t least = std::numeric_limits<int64_t>::max();
    for (int shard = 0; shard < graph.strategy().tp; ++shard) {
      int rank = graph.rankAt({replica, stage, shard});
      least = std::min(least, options.dynamicLimits[rank] - beside[rank]);
    }
    problem.limits.push_back(std::max<int64_t>(least, 0));
  }
}

} // namespace dyna
