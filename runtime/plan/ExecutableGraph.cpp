//===- ExecutableGraph.cpp - Which rank holds what ------------------------===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/ExecutableGraph.h"

#include "runtime/plan/Text.h"

#include <numeric>
#include <set>

namespace dyna {
namespace {

// Axes of the mesh, in the order that makes rank = (dp*PP + pp)*TP + tp.
enum { DP = 0, PP = 1, TP = 2 };

Status bad(const Strategy &strategy, const std::string &what) {
  return Status::invalidArgument("strategy '" + describeStrategy(strategy) +
                                 "': " + what);
}

Status checkCut(const ManifestView &model, const Strategy &strategy) {
  if (strategy.pp > model.layers())
    return bad(strategy, formatText("%d stages, but the model has %d layers",
                                    strategy.pp, model.layers()));
  int given =
      std::accumulate(strategy.layers.begin(), strategy.layers.end(), 0);
  if (given != model.layers())
    return bad(strategy,
               formatText("its stages have %d layers together, but the model "
                          "has %d (embedding and head count)",
                          given, model.layers()));
  return Status::ok();
}

} // namespace

StatusOr<ExecutableGraph> ExecutableGraph::create(const ManifestView &model,
                                                  Strategy strategy) {
  if (strategy.layers.empty() && strategy.pp == 1)
    strategy.layers = {model.layers()};
  DYNA_RETURN_IF_ERROR(checkCut(model, strategy));
  if (strategy.tp != 1)
    return bad(strategy, formatText("tensor degree %d was not compiled into "
                                    "this binary, only 1",
                                    strategy.tp));
  auto mesh = Mesh::create(
      {{"dp", strategy.dp}, {"pp", strategy.pp}, {"tp", strategy.tp}});
  if (!mesh.isOk())
    return mesh.status();
  ExecutableGraph graph(model, std::move(strategy), std::move(*mesh));
  graph.placeParameters();
  return graph;
}

void ExecutableGraph::placeParameters() {
  int first = 0;
  for (int layers : strategy_.layers) {
    stages_.push_back({first, first + layers});
    first += layers;
  }
  stagesOf_.resize(model_->parameters());
  for (int p = 0; p < model_->parameters(); ++p)
    layouts_.push_back(Layout::replicated(model_->parameter(p).shape_size()));
  for (int s = 0; s < stages(); ++s)
    for (int l = stages_[s].firstLayer; l < stages_[s].endLayer; ++l)
      for (int p : model_->layer(l).parameters())
        if (stagesOf_[p].empty() || stagesOf_[p].back() != s)
          stagesOf_[p].push_back(s);
}

ExecutableGraph::Place ExecutableGraph::placeOf(int rank) const {
  return {rank / (strategy_.pp * strategy_.tp),
          rank / strategy_.tp % strategy_.pp, rank % strategy_.tp};
}

int ExecutableGraph::rankAt(const Place &place) const {
  return (place.replica * strategy_.pp + place.stage) * strategy_.tp +
         place.shard;
}

int ExecutableGraph::stageOf(int layer) const {
  int stage = 0;
  while (layer >= stages_[stage].endLayer)
    ++stage;
  return stage;
}

std::vector<int> ExecutableGraph::holders(int parameter, int rank) const {
  std::vector<int> ranks;
  int shard = placeOf(rank).shard;
  for (int replica = 0; replica < strategy_.dp; ++replica)
    for (int stage : stagesOf_[parameter])
      ranks.push_back(rankAt({replica, stage, shard}));
  return ranks;
}

std::vector<std::vector<int>> ExecutableGraph::holderGroups() const {
  std::set<std::vector<int>> groups;
  for (int p = 0; p < model_->parameters(); ++p)
    if (!stagesOf_[p].empty())
      for (int shard = 0; shard < strategy_.tp; ++shard) {
        std::vector<int> ranks =
            holders(p, rankAt({0, stagesOf_[p].front(), shard}));
        if (ranks.size() > 1)
          groups.insert(std::move(ranks));
      }
  return {groups.begin(), groups.end()};
}

ManifestView ExecutableGraph::rankView(int rank) const {
  Place place = placeOf(rank);
  RankPart part;
  part.firstLayer = stages_[place.stage].firstLayer;
  part.endLayer = stages_[place.stage].endLayer;
  part.ranks = ranks();
  part.zero = strategy_.zero;
  part.parameters.resize(model_->parameters());
  for (int p = 0; p < model_->parameters(); ++p) {
    std::vector<int> ranks = holders(p, rank);
    size_t index = 0;
    while (index < ranks.size() && ranks[index] != rank)
      ++index;
    RankPart::Parameter &parameter = part.parameters[p];
    parameter.here = index < ranks.size();
    if (!parameter.here)
      continue;
    parameter.holders = static_cast<int>(ranks.size());
    int64_t rows = model_->rows(p), parts = strategy_.zero ? ranks.size() : 1;
    int64_t share = strategy_.zero ? index : 0;
    parameter.updateBegin = partBegin(rows, parts, share);
    parameter.updateEnd = partBegin(rows, parts, share + 1);
    parameter.counts = strategy_.zero || index == 0;
  }
  return model_->restrictedTo(std::move(part));
}

} // namespace dyna
