//===- LayerFacts.cpp - Collects loads and bytes of layers ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/balance/LayerFacts.h"

#include "runtime/plan/graph/MovedState.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/graph/StateBytes.h"
#include "runtime/plan/graph/StateTensors.h"
#include "runtime/planner/estimate/StageCosts.h"

#include <algorithm>

namespace dyna {
namespace {

double parametersOf(const CostModel &costs, int layer) {
  const Model &model = costs.model();
  double left = 0;
  for (int p : model.layer(layer).parameters())
    left += static_cast<double>(
        survivorsOf(model.elements(p),
                    parameterState(model, costs.layerStates(), p).sparsity));
  return left;
}

} // namespace

StatusOr<ExecutableGraph> layerByLayer(const Model &model, Strategy strategy) {
  strategy.pp = model.layers();
  strategy.layers.assign(model.layers(), 1);
  return ExecutableGraph::create(model, strategy);
}

StatusOr<LayerFacts> layerFacts(const CostModel &costs,
                                const Strategy &strategy, plan::Recompute mode,
                                const Load &microBatch) {
  const Model &model = costs.model();
  const LayerStates &states = costs.layerStates();
  DYNA_ASSIGN_OR_RETURN(const ExecutableGraph graph,
                        layerByLayer(model, strategy));
  LayerFacts facts;
  for (int l = 0; l < model.layers(); ++l) {
    const RankView &view = graph.replicaView(graph.rankAt({0, l, 0}));
    facts.names.push_back(model.layer(l).name());
    facts.parameters.push_back(parametersOf(costs, l));
    double seconds = 0;
    for (cost::Direction pass : trainingPasses(view.kind(l), mode, false))
      seconds += costs.seconds(costs.at(l, strategy), pass, microBatch);
    facts.seconds.push_back(seconds);
    facts.ownBytes.push_back(
        persistentBytes(graph.rankView(graph.rankAt({0, l, 0})), states));
    facts.keptBytes.push_back(keptBytes(view, states, l, mode, microBatch));
  }
  facts.stateBytes.assign(model.layers(), 0);
  for (const SwitchTensor &tensor : movedState(graph, graph, states))
    for (const RankBox &one : tensor.to)
      facts.stateBytes[graph.placeOf(one.rank).stage] +=
          one.box.volume() * tensor.elementBytes;
  return facts;
}

StatusOr<BytesOfLayers> bytesOfLayers(const Model &model,
                                      const Strategy &strategy) {
  DYNA_ASSIGN_OR_RETURN(const ExecutableGraph graph,
                        layerByLayer(model, strategy));
  BytesOfLayers bytes;
  bytes.state.assign(model.layers(), 0);
  for (int l = 0; l < model.layers(); ++l) {
    int64_t most = 0; // ZeRO need not deal equally
    for (int rank = 0; rank < graph.ranks(); ++rank)
      if (graph.placeOf(rank).stage == l)
        most = std::max(
            most,
            persistentLayout(graph.rankView(rank), Persistent::Training).bytes);
    bytes.tensors.push_back(most);
  }
  for (const SwitchTensor &tensor : stateTensors(graph, graph))
    for (const RankBox &one : tensor.to)
      bytes.state[graph.placeOf(one.rank).stage] +=
          one.box.volume() * tensor.elementBytes;
  for (int64_t &one : bytes.state)
    one /= int64_t{strategy.dp} * strategy.tp;
  return bytes;
}

std::vector<double> linkWaits(const ExecutableGraph &graph,
                              const CostModel &costs, const Load &microBatch) {
  std::vector<double> waits(graph.stages(), 0);
  for (int edge : graph.crossingEdges()) {
    const ExecutableGraph::Ends &ends = graph.endsOf(edge);
    const int from = graph.rankAt({0, ends.producer, 0});
    const int to = graph.rankAt({0, ends.consumer, 0});
    const auto bytes = static_cast<double>(
        graph.replicaView(to).messageBytes(edge, microBatch));
    waits[ends.consumer] += costs.cluster().messageSeconds(from, to, bytes);
    waits[ends.producer] += costs.cluster().messageSeconds(to, from, bytes);
  }
  return waits;
}

std::vector<int64_t> inFlightOf(int stages, int64_t microBatches) {
  std::vector<int64_t> kept;
  for (int s = 0; s < stages; ++s)
    kept.push_back(std::min<int64_t>(stages - s, microBatches));
  return kept;
}

} // namespace dyna
