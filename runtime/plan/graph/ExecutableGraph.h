//===- ExecutableGraph.h - Distributes a model over ranks -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A model under a strategy, as data: the mesh, and the layers of each stage.
// For every parameter it has the stages that hold it, and its split there. No
// code depends on it. So another cut, or another number of replicas, needs no
// compiler.
//
//     dp=2, tp=1, pp=2, five layers, layers=3+2, wte tied:
//
//     rank   d p    layers         holds wte   reduces wte with
//     0      0 0    emb h.0 h.1    yes         0 1 2 3
//     1      0 1    h.2 head       yes         0 1 2 3
//     2      1 0    emb h.0 h.1    yes         0 1 2 3
//     3      1 1    h.2 head       yes         0 1 2 3
//
// The *holders* of a parameter, as one rank sees them, have the same part of it
// and add to one gradient. The rank itself is one of them. The others are all
// replicas, on all stages that use it, and tensor-parallel ranks whose
// gradients are parts of a sum. Holders sum their gradients.
//
// Without ZeRO all of them update the parameter alike. With ZeRO each updates
// its own rows, and gathers the others' before the next forward. Rows are dealt
// as in runtime/abi/Collectives.h, in the order of the holders.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_EXECUTABLEGRAPH_H
#define DYNA_RUNTIME_PLAN_EXECUTABLEGRAPH_H

#include "runtime/layout/Layout.h"
#include "runtime/layout/Move.h"
#include "runtime/plan/graph/RankView.h"
#include "runtime/plan/model/Strategy.h"

#include <tuple>

namespace dyna {

/// Fails if there are more stages than layers, or if stages have a different
/// number of layers than the model. Stages whose layers are still to be chosen
/// are allowed.
Status checkStages(const Strategy &strategy, int layers);

/// Returns a strategy whose stages have layers as text, without its own name.
std::string graphName(Strategy strategy);

/// Returns the ranks of a strategy along its axes, in its order.
StatusOr<Mesh> meshOf(const Strategy &strategy);

class ExecutableGraph {
public:
  /// Makes the graph. `strategy.layers` must be given unless pp is 1 (the
  /// planner's `chooseLayers` does that). `model` must outlive the graph. Fails
  /// if the strategy does not fit the model or the compiled degrees.
  static StatusOr<ExecutableGraph> create(const Model &model,
                                          Strategy strategy);

  struct Place {
    int replica, stage, shard; ///< coordinates on dp, pp, tp
  };
  struct Stage {
    int firstLayer, endLayer;
  };

  const Model &model() const { return *model_; }
  const Strategy &strategy() const { return strategy_; }
  /// Returns its strategy with the cut, without people's name for it. Plans use
  /// this name.
  const std::string &name() const { return name_; }
  const Mesh &mesh() const { return mesh_; }
  int ranks() const { return strategy_.ranks(); }
  const Place &placeOf(int rank) const { return places_[rank]; }
  int rankAt(const Place &place) const;
  /// Returns the other end of a message on an edge. It has the same replica and
  /// shard, on the stage of the edge's consumer, or of its producer.
  int peerOf(int rank, int edge, bool towardsConsumer) const {
    Place place = placeOf(rank);
    place.stage = towardsConsumer ? ends_[edge].consumer : ends_[edge].producer;
    return rankAt(place);
  }

  /// Returns the number of devices, and the device of a rank. Each rank has its own device
  /// unless the strategy has `mirror`.
  int devices() const { return strategy_.devices(); }
  int deviceOf(int rank) const;
  /// Returns the other rank of this rank's device; -1 if there is none.
  int twinOf(int rank) const;

  int replicas() const { return strategy_.dp; }
  int ranksPerReplica() const { return strategy_.pp * strategy_.tp; }
  /// Returns an index that counts shards stage by stage, independent of the
  /// ranks' numbers.
  int indexInReplica(int rank) const {
    const Place &place = placeOf(rank);
    return place.stage * strategy_.tp + place.shard;
  }

  int stages() const { return strategy_.pp; }
  const Stage &stage(int index) const { return stages_[index]; }
  int stageOf(int layer) const { return stageOf_[layer]; }
  /// Stages of an edge's two layers. Token ids have no producer; both ends are then the
  /// consumer's stage.
  struct Ends {
    int producer, consumer;
  };
  const Ends &endsOf(int edge) const { return ends_[edge]; }
  /// Edges between stages, in the order of their numbers. Messages carry their values.
  const std::vector<int> &crossingEdges() const { return crossing_; }
  /// Returns the index of an edge among those with the same two stages.
  int channelIndex(int edge) const;
  /// Returns the stages that use the parameter, in order.
  const std::vector<int> &stagesOf(int parameter) const {
    return stagesOf_[parameter];
  }
  /// Returns true if several stages use the parameter. It is then exchanged
  /// separately, in a group of its own, because each stage reaches it in the
  /// order of its own layers. A frozen parameter is not exchanged.
  bool spansStages(int parameter) const {
    return stagesOf_[parameter].size() > 1 && !model_->isFrozen(parameter);
  }
  /// Returns how the parameter is split over the ranks of one stage.
  const Layout &layout(int parameter) const { return layouts_[parameter]; }
  /// Returns the ranks that differ from `rank` only in these parts of the mesh.
  std::vector<int> groupOf(int rank, const AxisParts &parts) const;
  /// Returns the group of `rank` that layer functions call `index`:
  /// DYNA_GROUP_*, then those of the manifest. A group of another tensor degree
  /// is the rank alone.
  int compiledGroups() const;
  std::vector<int> compiledGroup(int rank, int index) const;

  /// Returns the holders of a parameter that `rank` holds too, replica by
  /// replica and stage by stage.
  std::vector<int> holders(int parameter, int rank) const;
  /// Number of holders, and the index of a rank among them; -1 if it does not
  /// hold the parameter. The holders are not listed.
  struct HolderIndex {
    int64_t index, count;
  };
  HolderIndex holderIndex(int parameter, int rank) const;
  /// Returns lists of holders that together have every element of a parameter
  /// once.
  std::vector<std::vector<int>> copiesOf(int parameter) const;
  //===--------------------------------------------------------------------===//
  // Boxes of a parameter's logical tensor, as rows and columns (a scalar is one
  // row). Moves start from them and lead to them (runtime/layout/Move.h).
  //===--------------------------------------------------------------------===//

  /// Returns the boxes of all ranks that hold it.
  std::vector<RankBox> boxes(int parameter) const;
  /// Returns the boxes that are up to date after a plan; with ZeRO the rows
  /// that each rank updates.
  std::vector<RankBox> currentBoxes(int parameter) const;
  /// Returns the boxes of what only the optimizer uses: moments, and masters beside a copy.
  /// With ZeRO each rank has those of the rows that it updates. Parked parameters have
  /// them, too, while all ranks have all of their values.
  std::vector<RankBox> updatedBoxes(int parameter) const;
  /// Returns the boxes of the ranks whose gradients add up to the gradient.
  std::vector<RankBox> summandBoxes(int parameter) const;

  /// Ranks that exchange parameters: one parameter, or all that stay on one
  /// stage (-1).
  struct HolderGroup {
    std::vector<int> ranks;
    int parameter;
    bool operator<(const HolderGroup &other) const {
      return std::tie(ranks, parameter) <
             std::tie(other.ranks, other.parameter);
    }
  };
  /// Returns every group of holders once, in an order that all ranks share;
  /// some have one rank. They are listed once, because a group has as many
  /// ranks as there are replicas.
  const std::vector<HolderGroup> &holderGroups() const { return holderGroups_; }
  /// Returns the index of the group in which `rank` holds a parameter.
  int holderGroup(int parameter, int rank) const {
    return holderGroupOf_[parameter][indexInReplica(rank)];
  }

  /// Makes the model as one rank sees it.
  RankView rankView(int rank) const;
  /// Returns the view of the rank with the same stage and shard in replica 0.
  /// The rank's own view differs only in the rows that it updates.
  const RankView &replicaView(int rank) const {
    return replicaViews_[indexInReplica(rank)];
  }

private:
  ExecutableGraph(const Model &model, Strategy strategy, Mesh mesh)
      : model_(&model), strategy_(std::move(strategy)),
        name_(graphName(strategy_)), mesh_(std::move(mesh)),
        dp_(mesh_.wholeAxis(*mesh_.findAxis("dp"))),
        pp_(mesh_.wholeAxis(*mesh_.findAxis("pp"))),
        tp_(mesh_.wholeAxis(*mesh_.findAxis("tp"))) {
    placeRanks();
  }
  Status chooseDegree();
  void placeRanks();
  void placeLayers();
  void placeParameters();
  void groupHolders();
  std::vector<int> distinctGroups(int parameter) const;
  void splitParameter(int parameter, const plan::ParameterSplit &split);
  Box boxOf(int parameter, int rank) const;
  /// Returns a factor of the tensor-parallel axis as a part of the mesh.
  AxisPart tensorPart(const plan::AxisPart &part) const {
    return {tp_.axis, part.stride(), part.size()};
  }

  const Model *model_;
  Strategy strategy_;
  std::string name_;
  Mesh mesh_;
  AxisPart dp_, pp_, tp_;     ///< whole axes of the mesh
  std::vector<Place> places_; ///< of each rank
  std::vector<Stage> stages_;
  std::vector<int> stageOf_;  ///< by layer
  std::vector<Ends> ends_;    ///< by edge
  std::vector<int> crossing_; ///< edges between stages
  std::vector<std::vector<int>> stagesOf_;
  int degree_ = -1; ///< index into Manifest.degrees
  std::vector<Layout> layouts_;
  std::vector<AxisParts> partial_; ///< of each parameter's gradient
  std::vector<HolderGroup> holderGroups_;
  /// By parameter and rank of a replica; -1 where it is not held.
  std::vector<std::vector<int>> holderGroupOf_;
  /// By parameter, the groups whose lists copiesOf returns.
  std::vector<std::vector<int>> copyGroups_;
  std::vector<RankView> replicaViews_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_EXECUTABLEGRAPH_H
