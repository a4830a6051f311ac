//===- StageCosts.cpp - Computes times of stages ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/StageCosts.h"

#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/order/GraphLinks.h"

#include <algorithm>
#include <map>
#include <tuple>
#include <utility>

namespace dyna {

std::vector<cost::Direction> trainingPasses(const plan::LayerKind &kind,
                                            plan::Recompute wished,
                                            bool split) {
  std::vector<cost::Direction> passes = {cost::FORWARD};
  if (!hasBackward(kind))
    return passes;
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

int shardsPerNode(const ExecutableGraph &graph, const CostModel &costs,
                  int stage) {
  const int rank = graph.rankAt({0, stage, 0});
  return costs.cluster()
      .shapeOf(graph.compiledGroup(rank, DYNA_GROUP_TP))
      .perNode;
}

namespace {

/// Seconds of one layer, by micro-batch. `backward` contains weight gradients
/// and recomputation.
struct LayerSeconds {
  std::vector<double> forward, backward, weight, recompute;
};

LayerSeconds secondsOf(const CostModel &costs, const KindAt &at,
                       const std::vector<cost::Direction> &passes,
                       const std::vector<Load> &loads) {
  LayerSeconds seconds;
  for (const Load &load : loads) {
    seconds.forward.push_back(costs.seconds(at, passes[0], load));
    double backward = 0, weight = 0, recompute = 0;
    for (size_t p = 1; p < passes.size(); ++p) {
      double part = costs.seconds(at, passes[p], load);
      backward += part;
      if (passes[p] == cost::BACKWARD_WEIGHT)
        weight += part;
      if (passes[p] == cost::RECOMPUTE_SELECTIVE ||
          passes[p] == cost::RECOMPUTE_FULL)
        recompute += part;
    }
    seconds.backward.push_back(backward);
    seconds.weight.push_back(weight);
    seconds.recompute.push_back(recompute);
  }
  return seconds;
}

std::vector<Load> loadsOf(const plan::Plan &plan,
                          const std::vector<int> &microBatches) {
  std::vector<Load> loads;
  for (int m : microBatches) {
    Load &load = loads.emplace_back(loadOf(plan.microBatches[m]));
    load.targets = load.queries;
  }
  return loads;
}

} // namespace

double messageSeconds(const ExecutableGraph &graph, const CostModel &costs,
                      const std::vector<Load> &loads) {
  double most = 0;
  Load mean;
  for (const Load &load : loads)
    mean += load;
  if (loads.empty())
    return 0;
  mean.queries /= static_cast<int64_t>(loads.size());
  mean.keys /= static_cast<int64_t>(loads.size());
  for (int edge : graph.crossingEdges()) {
    const int from = graph.rankAt({0, graph.endsOf(edge).producer, 0});
    const int to = graph.rankAt({0, graph.endsOf(edge).consumer, 0});
    const int64_t bytes = graph.replicaView(to).messageBytes(edge, mean);
    most = std::max(most, costs.cluster().messageSeconds(
                              from, to, static_cast<double>(bytes)));
  }
  return most;
}

Load loadOfEqual(int64_t length, int64_t tokens) {
  Load load = times(loadOfSample(length), tokens / length);
  load.queries = load.keys = load.targets = tokens;
  return load;
}

PipelineProblem estimateStages(const ExecutableGraph &graph,
                               const CostModel &costs, const plan::Plan &plan,
                               const std::vector<int> &microBatches,
                               const PlanChoice &choice) {
  const std::vector<Load> loads = loadsOf(plan, microBatches);
  // Layers of one kind, state and mode take the same time.
  const Strategy &strategy = graph.strategy();
  std::map<std::tuple<int, int, plan::Recompute>, LayerSeconds> known;
  auto secondsIn = [&](const RankView &view, int perNode, int layer,
                       plan::Recompute mode) -> const LayerSeconds & {
    auto [entry, isNew] =
        known.try_emplace({costs.variantOf(layer), perNode, mode});
    if (isNew)
      entry->second = secondsOf(
          costs, costs.at(layer, strategy, perNode),
          trainingPasses(view.kind(layer), mode, choice.splitBackward), loads);
    return entry->second;
  };
  PipelineProblem stages;
  stages.previous = findBundles(plan, microBatches).previous(microBatches);
  const bool pieces = ruleOf(choice.schedule).adapts;
  const bool apart = pieces && choice.splitBackward;
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    const int perNode = shardsPerNode(graph, costs, stage);
    auto &forward = stages.forward.emplace_back(microBatches.size(), 0);
    auto &backward = stages.backward.emplace_back(microBatches.size(), 0);
    if (apart)
      stages.weight.emplace_back(microBatches.size(), 0);
    if (pieces)
      stages.recompute.emplace_back(microBatches.size(), 0);
    for (int l = view.firstLayer(); l < view.endLayer(); ++l)
      for (size_t m = 0; m < microBatches.size(); ++m) {
        const LayerSeconds &seconds =
            secondsIn(view, perNode, l, choice.modeOf(l, microBatches[m]));
        forward[m] += seconds.forward[m];
        backward[m] += seconds.backward[m];
        if (apart)
          stages.weight.back()[m] += seconds.weight[m];
        // Counts the last layer of the stage, with which backward begins.
        // Recomputation of other layers comes after gradients have arrived.
        if (pieces)
          stages.recompute.back()[m] = seconds.recompute[m];
      }
  }
  // Orders by numbers alone ignore the seconds of messages.
  stages.links =
      linksOf(graph, pieces ? messageSeconds(graph, costs, loads) : 0);
  return stages;
}

} // namespace dyna
