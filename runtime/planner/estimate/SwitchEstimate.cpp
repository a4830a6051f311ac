//===- SwitchEstimate.cpp - Estimates the cost of a switch ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/SwitchEstimate.h"

#include "runtime/planner/switch/routes/Lots.h"

#include <algorithm>
#include <cassert>
#include <map>
#include <utility>

namespace dyna {
namespace {

/// Boxes by their numbers, to find equal lists.
std::vector<int64_t> keyOf(const std::vector<RankBox> &boxes) {
  std::vector<int64_t> key;
  key.reserve(5 * boxes.size());
  for (const RankBox &one : boxes)
    key.insert(key.end(), {one.rank, one.box.begin[0], one.box.size[0],
                           one.box.begin[1], one.box.size[1]});
  return key;
}

/// Bytes that come to each node over the network, and to each rank.
class Arrivals {
public:
  Arrivals(const Cluster &cluster, int ranks)
      : cluster_(cluster), ofRank_(ranks, 0),
        ofNode_(cluster.nodeOf(ranks - 1) + 1, 0),
        holds_(ofNode_.size(), false), lacks_(ofNode_.size(), 0) {}

  /// Adds a lot for every needer that lacks it. If it goes to only one of them,
  /// adds it evenly to all.
  void add(const switches::Lot &lot) {
    for (int rank : lot.holders)
      holds_[cluster_.nodeOf(rank)] = true;
    if (lot.delivery == Delivery::Once)
      addOnce(lot);
    else
      addAll(lot);
    for (int rank : lot.holders)
      holds_[cluster_.nodeOf(rank)] = false;
  }

  double seconds() const {
    const cost::Link &inside = cluster_.description().inside();
    const cost::Link &between = cluster_.description().between();
    const double network = between.bytes_per_second();
    const int perNode = cluster_.description().devices_per_node();
    const double ports =
        network *
        (perNode > 0
             ? std::min<double>(perNode, static_cast<double>(ofRank_.size()))
             : static_cast<double>(ofRank_.size()));
    double most = 0;
    if (ports > 0)
      for (double bytes : ofNode_)
        most = std::max(most, bytes / ports);
    if (double rate = inside.bytes_per_second(); rate > 0)
      for (double bytes : ofRank_)
        most =
            std::max(most, bytes / (rate + (ofNode_.size() > 1 ? network : 0)));
    return most;
  }

private:
  void addAll(const switches::Lot &lot) {
    const auto bytes = static_cast<double>(lot.bytes);
    for (int rank : lot.lacking) {
      ofRank_[rank] += bytes;
      lacks_[cluster_.nodeOf(rank)] = 1;
    }
    for (int rank : lot.lacking) {
      const int node = cluster_.nodeOf(rank);
      // Only one copy for each node crosses the network.
      if (std::exchange(lacks_[node], 0) == 1 && !holds_[node])
        ofNode_[node] += bytes;
    }
  }

  /// Adds a lot that one of several ranks needs. No rank lacks it if one of
  /// them has it.
  void addOnce(const switches::Lot &lot) {
    if (lot.lacking.empty())
      return;
    int near = 0;
    for (int rank : lot.lacking)
      near += holds_[cluster_.nodeOf(rank)] ? 1 : 0;
    const double share =
        static_cast<double>(lot.bytes) /
        static_cast<double>(near > 0 ? near
                                     : static_cast<int>(lot.lacking.size()));
    for (int rank : lot.lacking) {
      const int node = cluster_.nodeOf(rank);
      if (near > 0 && !holds_[node])
        continue;
      ofRank_[rank] += share;
      if (near == 0)
        ofNode_[node] += share;
    }
  }

  const Cluster &cluster_;
  std::vector<double> ofRank_, ofNode_;
  std::vector<bool> holds_; ///< nodes
  std::vector<int> lacks_;
};

} // namespace

SwitchLayout::SwitchLayout(const ExecutableGraph &graph)
    : ranks_(graph.ranks()) {
  std::map<std::pair<std::vector<int64_t>, std::vector<int64_t>>, int> known;
  for (int p = 0; p < graph.model().parameters(); ++p) {
    Lists lists{graph.boxes(p), graph.currentBoxes(p)};
    auto [found, isNew] =
        known.try_emplace({keyOf(lists.boxes), keyOf(lists.current)},
                          static_cast<int>(lists_.size()));
    if (isNew)
      lists_.push_back(std::move(lists));
    listOf_.push_back(found->second);
  }
}

SwitchEstimator::SwitchEstimator(const Model &model, const Cluster &cluster)
    : cluster_(cluster) {
  for (int p = 0; p < model.parameters(); ++p)
    parameters_.push_back(
        {elementBytes(model.computeType(p)),
         model.isFrozen(p) ? 0 : elementBytes(model.gradientType())});
}

double SwitchEstimator::seconds(SwitchKind kind, const SwitchLayout &from,
                                const SwitchLayout &to) const {
  const bool once = kind == SwitchKind::Gradients;
  // Sum the bytes of an element over all parameters of a pair of classes.
  std::map<std::pair<int, int>, int64_t> bytes;
  for (size_t p = 0; p < parameters_.size(); ++p)
    bytes[{from.listOf_[p], to.listOf_[p]}] +=
        once ? parameters_[p].gradientBytes : parameters_[p].valueBytes;
  std::vector<SwitchTensor> tensors;
  for (auto [pair, perElement] : bytes) {
    const SwitchLayout::Lists &before = from.lists_[pair.first];
    const SwitchLayout::Lists &behind = to.lists_[pair.second];
    SwitchTensor &tensor = tensors.emplace_back();
    tensor.elementBytes = perElement;
    tensor.delivery = once ? Delivery::Once : Delivery::All;
    // With ZeRO a rank has the rows that it updates, and the gradients that it reduced.
    tensor.from = kind == SwitchKind::Next ? before.boxes : before.current;
    // Home adds gradients to those of any rank that has the parameter.
    tensor.to = behind.boxes;
  }
  auto lots = switches::findLots(tensors);
  // All ranks of a graph together have all parameters of the model, so no lot
  // lacks a holder.
  assert(lots.isOk());
  Arrivals arrivals(cluster_, std::max(from.ranks_, to.ranks_));
  for (const switches::Lot &lot : lots->lots)
    arrivals.add(lot);
  return arrivals.seconds();
}

} // namespace dyna
