//===- ExecutableGraph.cpp - Distributes a model over ranks ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/ExecutableGraph.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace dyna {
namespace {

Status bad(const Strategy &strategy, const std::string &what) {
  return Status::invalidArgument("strategy '" + describeStrategy(strategy) +
                                 "': " + what);
}

} // namespace

Status checkStages(const Strategy &strategy, int layers) {
  if (strategy.pp > layers)
    return bad(strategy, formatText("%d stages, but the model has %d layers",
                                    strategy.pp, layers));
  int given =
      std::accumulate(strategy.layers.begin(), strategy.layers.end(), 0);
  if (!strategy.layers.empty() && given != layers)
    return bad(strategy,
               formatText("its stages have %d layers together, but the model "
                          "has %d (embedding and head count)",
                          given, layers));
  return Status::ok();
}

std::string graphName(Strategy strategy) {
  strategy.name.clear();
  return describeStrategy(strategy);
}

StatusOr<Mesh> meshOf(const Strategy &strategy) {
  std::vector<MeshAxis> axes;
  for (const std::string &name : strategy.order)
    axes.push_back({name, name == "dp"   ? strategy.dp
                          : name == "pp" ? strategy.pp
                                         : strategy.tp});
  return Mesh::create(std::move(axes));
}

StatusOr<ExecutableGraph> ExecutableGraph::create(const Model &model,
                                                  Strategy strategy) {
  if (strategy.layers.empty() && strategy.pp == 1)
    strategy.layers = {model.layers()};
  DYNA_RETURN_IF_ERROR(checkStages(strategy, model.layers()));
  if (strategy.layers.empty())
    return bad(strategy, "says no layers of its stages: choose them first");
  DYNA_ASSIGN_OR_RETURN(auto mesh, meshOf(strategy));
  ExecutableGraph graph(model, std::move(strategy), std::move(mesh));
  DYNA_RETURN_IF_ERROR(graph.chooseDegree());
  graph.placeLayers();
  graph.placeParameters();
  graph.groupHolders();
  for (int stage = 0; stage < graph.stages(); ++stage)
    for (int shard = 0; shard < graph.strategy_.tp; ++shard)
      graph.replicaViews_.push_back(
          graph.rankView(graph.rankAt({0, stage, shard})));
  return graph;
}

Status ExecutableGraph::chooseDegree() {
  if (strategy_.tp == 1)
    return Status::ok();
  const plan::Manifest &manifest = model_->manifest();
  auto describe = [](int tp, bool sp) {
    return formatText("tp=%d%s", tp, sp ? ",sp=1" : "");
  };
  std::string compiled = describe(1, false);
  for (int d = 0; d < manifest.degrees_size(); ++d) {
    const plan::TensorDegree &degree = manifest.degrees(d);
    if (degree.tp() == strategy_.tp && degree.sp() == strategy_.sp)
      degree_ = d;
    compiled += " or " + describe(degree.tp(), degree.sp());
  }
  if (degree_ >= 0)
    return Status::ok();
  return bad(strategy_,
             formatText("%s was not compiled into this binary, only %s: give "
                        "dynac --strategies with it",
                        describe(strategy_.tp, strategy_.sp), compiled));
}

void ExecutableGraph::placeLayers() {
  int first = 0;
  for (int layers : strategy_.layers) {
    stageOf_.insert(stageOf_.end(), layers, static_cast<int>(stages_.size()));
    stages_.push_back({first, first + layers});
    first += layers;
  }
  for (int e = 0; e < model_->edges(); ++e) {
    const Edge &edge = model_->edge(e);
    const int consumer = stageOf_[edge.consumer];
    ends_.push_back(
        {edge.producer < 0 ? consumer : stageOf_[edge.producer], consumer});
    if (ends_[e].producer != consumer)
      crossing_.push_back(e);
  }
}

int ExecutableGraph::channelIndex(int edge) const {
  int index = 0;
  for (int other : crossing_) {
    if (other == edge)
      break;
    index += ends_[other].producer == ends_[edge].producer &&
             ends_[other].consumer == ends_[edge].consumer;
  }
  return index;
}

void ExecutableGraph::placeParameters() {
  stagesOf_.resize(model_->parameters());
  partial_.resize(model_->parameters());
  for (int p = 0; p < model_->parameters(); ++p)
    layouts_.push_back(Layout::replicated(model_->parameter(p).shape_size()));
  const plan::Manifest &manifest = model_->manifest();
  for (int s = 0; s < stages(); ++s)
    for (int l = stages_[s].firstLayer; l < stages_[s].endLayer; ++l)
      for (int slot = 0; slot < model_->layer(l).parameters_size(); ++slot) {
        int p = model_->layer(l).parameters(slot);
        // All users of a parameter split it in the same form (checkManifest).
        if (stagesOf_[p].empty() && degree_ >= 0)
          splitParameter(p, manifest.degrees(degree_)
                                .kinds(model_->layer(l).kind())
                                .splits(slot));
        if (stagesOf_[p].empty() || stagesOf_[p].back() != s)
          stagesOf_[p].push_back(s);
      }
}

void ExecutableGraph::splitParameter(int parameter,
                                     const plan::ParameterSplit &split) {
  for (const plan::AxisPart &part : split.parts())
    layouts_[parameter].dims[split.dim()].push_back(tensorPart(part));
  for (const plan::AxisPart &part : split.gradient_partial())
    partial_[parameter].push_back(tensorPart(part));
}

/// Rows and columns of a parameter on a rank; a scalar is one row.
Box ExecutableGraph::boxOf(int parameter, int rank) const {
  const auto &sizes = model_->parameter(parameter).shape();
  Box box = localBox(mesh_, layouts_[parameter],
                     Shape(sizes.begin(), sizes.end()), rank);
  if (box.begin.empty())
    return {{0, 0}, {1, 1}};
  for (; box.begin.size() > 2; box.begin.pop_back(), box.size.pop_back())
    box.size[box.size.size() - 2] *= box.size.back();
  if (box.begin.size() == 1) {
    box.begin.push_back(0);
    box.size.push_back(1);
  }
  return box;
}

/// Computes the places of ranks once, because every instruction of a
/// verification needs them.
void ExecutableGraph::placeRanks() {
  places_.resize(ranks());
  for (int rank = 0; rank < ranks(); ++rank) {
    auto along = [&](const AxisPart &axis) {
      return static_cast<int>(mesh_.coordinate(rank, axis));
    };
    places_[rank] = {along(dp_), along(pp_), along(tp_)};
  }
}

int ExecutableGraph::rankAt(const Place &place) const {
  return static_cast<int>(place.replica * mesh_.positionStride(dp_) +
                          place.stage * mesh_.positionStride(pp_) +
                          place.shard * mesh_.positionStride(tp_));
}

int ExecutableGraph::deviceOf(int rank) const {
  if (!strategy_.mirror)
    return rank;
  const Place &place = placeOf(rank);
  const bool isMirrored = place.replica % 2 != 0;
  int device = 0;
  for (const std::string &axis : strategy_.order) {
    if (axis == "dp")
      device = device * (strategy_.dp / 2) + place.replica / 2;
    else if (axis == "pp")
      device = device * strategy_.pp +
               (isMirrored ? strategy_.pp - 1 - place.stage : place.stage);
    else
      device = device * strategy_.tp + place.shard;
  }
  return device;
}

int ExecutableGraph::twinOf(int rank) const {
  if (!strategy_.mirror)
    return -1;
  const Place &place = placeOf(rank);
  return rankAt(
      {place.replica ^ 1, strategy_.pp - 1 - place.stage, place.shard});
}

std::vector<int> ExecutableGraph::groupOf(int rank,
                                          const AxisParts &parts) const {
  std::vector<int> ranks;
  for (int64_t member : mesh_.groupRanks(rank, parts))
    ranks.push_back(static_cast<int>(member));
  return ranks;
}

int ExecutableGraph::compiledGroups() const {
  return DYNA_GROUP_COUNT + model_->manifest().groups_size();
}

std::vector<int> ExecutableGraph::compiledGroup(int rank, int index) const {
  static_assert(DYNA_GROUP_DP == 0 && DYNA_GROUP_TP == 1 && DYNA_GROUP_PP == 2);
  const AxisPart axes[] = {dp_, tp_, pp_};
  if (index < DYNA_GROUP_COUNT)
    return groupOf(rank, {axes[index]});
  const plan::TensorGroup &group =
      model_->manifest().groups(index - DYNA_GROUP_COUNT);
  if (group.tp() != strategy_.tp)
    return {rank};
  AxisParts parts;
  for (const plan::AxisPart &part : group.parts())
    parts.push_back(tensorPart(part));
  return groupOf(rank, parts);
}

std::vector<int> ExecutableGraph::holders(int parameter, int rank) const {
  std::vector<int> ranks;
  for (int replica = 0; replica < strategy_.dp; ++replica)
    for (int stage : stagesOf_[parameter])
      for (int member : groupOf(rankAt({replica, stage, placeOf(rank).shard}),
                                partial_[parameter]))
        ranks.push_back(member);
  return ranks;
}

ExecutableGraph::HolderIndex ExecutableGraph::holderIndex(int parameter,
                                                          int rank) const {
  const std::vector<int> &stages = stagesOf_[parameter];
  const AxisParts &partial = partial_[parameter];
  Place place = placeOf(rank);
  int64_t used = static_cast<int64_t>(stages.size());
  int64_t members = groupSize(partial);
  int64_t stage =
      std::find(stages.begin(), stages.end(), place.stage) - stages.begin();
  int64_t index =
      (place.replica * used + stage) * members + mesh_.indexIn(rank, partial);
  return {stage == used ? -1 : index, strategy_.dp * used * members};
}

std::vector<std::vector<int>> ExecutableGraph::copiesOf(int parameter) const {
  std::vector<std::vector<int>> copies;
  for (int group : copyGroups_[parameter])
    copies.push_back(holderGroups_[group].ranks);
  return copies;
}

std::vector<RankBox> ExecutableGraph::boxes(int parameter) const {
  std::vector<RankBox> boxes;
  for (int rank = 0; rank < ranks(); ++rank)
    if (holderIndex(parameter, rank).index >= 0)
      boxes.push_back({rank, boxOf(parameter, rank)});
  return boxes;
}

std::vector<RankBox> ExecutableGraph::currentBoxes(int parameter) const {
  return model_->isFrozen(parameter) ? boxes(parameter)
                                     : updatedBoxes(parameter);
}

std::vector<RankBox> ExecutableGraph::updatedBoxes(int parameter) const {
  std::vector<RankBox> updated = boxes(parameter);
  if (strategy_.zero && model_->hasMoments(parameter))
    for (RankBox &one : updated) {
      auto [index, count] = holderIndex(parameter, one.rank);
      int64_t rows = one.box.size[0];
      one.box.begin[0] += partBegin(rows, count, index);
      one.box.size[0] = partSize(rows, count, index);
    }
  return updated;
}

std::vector<RankBox> ExecutableGraph::summandBoxes(int parameter) const {
  std::vector<RankBox> boxes;
  for (const std::vector<int> &holders : copiesOf(parameter))
    for (int rank : holders)
      boxes.push_back({rank, boxOf(parameter, rank)});
  return boxes;
}

void ExecutableGraph::groupHolders() {
  std::map<HolderGroup, int> ids;
  holderGroupOf_.assign(model_->parameters(),
                        std::vector<int>(ranksPerReplica(), -1));
  for (int p = 0; p < model_->parameters(); ++p)
    for (int stage : stagesOf_[p])
      for (int shard = 0; shard < strategy_.tp; ++shard) {
        int rank = rankAt({0, stage, shard});
        HolderGroup group = {model_->isFrozen(p) ? std::vector<int>{rank}
                                                 : holders(p, rank),
                             spansStages(p) ? p : -1};
        holderGroupOf_[p][indexInReplica(rank)] =
            ids.insert({std::move(group), static_cast<int>(ids.size())})
                .first->second;
      }
  // Number groups in the order of the lists, not of their first mention.
  std::vector<int> place(ids.size());
  for (auto &[group, id] : ids) {
    place[id] = static_cast<int>(holderGroups_.size());
    holderGroups_.push_back(group);
  }
  for (std::vector<int> &groups : holderGroupOf_)
    for (int &group : groups)
      group = group < 0 ? -1 : place[group];
  for (int p = 0; p < model_->parameters(); ++p)
    copyGroups_.push_back(distinctGroups(p));
}

/// Returns a group for each different part of the parameter.
std::vector<int> ExecutableGraph::distinctGroups(int parameter) const {
  std::vector<int> groups;
  std::vector<Box> seen;
  for (int shard = 0; shard < strategy_.tp && !stagesOf_[parameter].empty();
       ++shard) {
    int rank = rankAt({0, stagesOf_[parameter].front(), shard});
    Box box = boxOf(parameter, rank);
    if (std::find(seen.begin(), seen.end(), box) != seen.end() || box.isEmpty())
      continue;
    seen.push_back(std::move(box));
    groups.push_back(holderGroup(parameter, rank));
  }
  return groups;
}

RankView ExecutableGraph::rankView(int rank) const {
  Place place = placeOf(rank);
  RankPart part;
  part.firstLayer = stages_[place.stage].firstLayer;
  part.endLayer = stages_[place.stage].endLayer;
  part.ranks = ranks();
  part.tp = strategy_.tp;
  part.shard = place.shard;
  part.degree = degree_;
  part.zero = strategy_.zero;
  part.parameters.resize(model_->parameters());
  for (int p = 0; p < model_->parameters(); ++p) {
    auto [index, count] = holderIndex(p, rank);
    RankPart::Parameter &parameter = part.parameters[p];
    parameter.here = index >= 0;
    if (!parameter.here)
      continue;
    Box box = boxOf(p, rank);
    parameter.rows = box.size[0];
    parameter.rowElements = box.size[1];
    parameter.firstRow = box.begin[0];
    parameter.firstColumn = box.begin[1];
    if (model_->hasMoments(p)) {
      const int64_t parts = strategy_.zero ? count : 1;
      const int64_t share = strategy_.zero ? index : 0;
      parameter.updateBegin = partBegin(box.size[0], parts, share);
      parameter.updateEnd = partBegin(box.size[0], parts, share + 1);
    }
    if (model_->isFrozen(p)) {
      parameter.counts = false;
      continue;
    }
    parameter.holders = static_cast<int>(count);
    const std::vector<int> &copies = copyGroups_[p];
    parameter.counts = (strategy_.zero || index == 0) &&
                       std::find(copies.begin(), copies.end(),
                                 holderGroup(p, rank)) != copies.end();
  }
  return RankView(*model_, std::move(part));
}

} // namespace dyna
