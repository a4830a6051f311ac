//===- StageCosts.cpp - What stages take for micro-batches -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/StageCosts.h"

#include <map>
#include <utility>

namespace dyna {

std::vector<cost::Direction> trainingPasses(const plan::LayerKind &kind,
                                            plan::Recompute wished,
                                            bool split) {
  std::vector<cost::Direction> passes = {cost::FORWARD};
  if (splitsBackward(kind) && (split || !hasRole(kind, DYNA_ROLE_BACKWARD)))
    passes.insert(passes.end(), {cost::BACKWARD_INPUT, cost::BACKWARD_WEIGHT});
  else
    passes.push_back(cost::BACKWARD);
  plan::Recompute mode = nearestMode(kind, wished);
  if (mode == plan::RECOMPUTE_SELECTIVE)
    passes.push_back(cost::RECOMPUTE_SELECTIVE);
  if (mode == plan::RECOMPUTE_FULL)
    passes.push_back(cost::RECOMPUTE_FULL);
  return passes;
}

namespace {

using Seconds = std::pair<std::vector<double>, std::vector<double>>;

/// Forward and backward of one layer, for every micro-batch.
Seconds secondsOf(const CostModel &costs, const KindAt &at,
                  const std::vector<cost::Direction> &passes,
                  const std::vector<Work> &works) {
  Seconds seconds;
  for (const Work &work : works) {
    seconds.first.push_back(costs.seconds(at, passes[0], work));
    seconds.second.push_back(0);
    for (size_t p = 1; p < passes.size(); ++p)
      seconds.second.back() += costs.seconds(at, passes[p], work);
  }
  return seconds;
}

} // namespace

StageCosts estimateStages(const ExecutableGraph &graph, const CostModel &costs,
                          const plan::Plan &plan,
                          const std::vector<int> &microBatches,
                          const PlanOptions &options) {
  const Strategy &strategy = graph.strategy();
  // Layers of one kind and mode take the same.
  std::map<std::pair<int, plan::Recompute>, Seconds> known;
  StageCosts stages;
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    stages.forward.emplace_back(microBatches.size(), 0);
    stages.backward.emplace_back(microBatches.size(), 0);
    for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
      const int kind = view.layer(l).kind();
      plan::Recompute mode = modeOf(options.recompute, l);
      auto [entry, isNew] = known.try_emplace({kind, mode});
      if (isNew) {
        std::vector<Work> works;
        for (int m : microBatches) {
          Work &work = works.emplace_back();
          for (const plan::Segment &segment : plan.microBatches[m].segments) {
            work.tokens += segment.length;
            work.pairs += visiblePairs(view.kind(l), segment.length);
          }
          work.targets = work.tokens;
        }
        entry->second = secondsOf(
            costs, {kind, strategy.tp, strategy.sp},
            trainingPasses(view.kind(l), mode, options.splitBackward), works);
      }
      for (size_t m = 0; m < microBatches.size(); ++m) {
        stages.forward.back()[m] += entry->second.first[m];
        stages.backward.back()[m] += entry->second.second[m];
      }
    }
  }
  return stages;
}

} // namespace dyna
