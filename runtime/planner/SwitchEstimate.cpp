//===- SwitchEstimate.cpp - About what a switch takes ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/SwitchEstimate.h"

#include <algorithm>
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

/// Where boxes begin and end along a dimension.
void addBorders(const std::vector<RankBox> &boxes, int dimension,
                std::vector<int64_t> &borders) {
  for (const RankBox &one : boxes) {
    borders.push_back(one.box.begin[dimension]);
    borders.push_back(one.box.begin[dimension] + one.box.size[dimension]);
  }
}

std::vector<int64_t> bordersOf(const std::vector<RankBox> &from,
                               const std::vector<RankBox> &to, int dimension) {
  std::vector<int64_t> borders;
  addBorders(from, dimension, borders);
  addBorders(to, dimension, borders);
  std::sort(borders.begin(), borders.end());
  borders.erase(std::unique(borders.begin(), borders.end()), borders.end());
  return borders;
}

void ranksWith(const std::vector<RankBox> &boxes, int64_t row, int64_t column,
               std::vector<int> &ranks) {
  ranks.clear();
  for (const RankBox &one : boxes) {
    const Box &box = one.box;
    if (box.begin[0] <= row && row < box.begin[0] + box.size[0] &&
        box.begin[1] <= column && column < box.begin[1] + box.size[1])
      ranks.push_back(one.rank);
  }
}

/// Bytes that come to each node over the network, and to each rank.
class Arrivals {
public:
  Arrivals(const Cluster &cluster, int ranks)
      : cluster_(cluster), ofRank_(ranks, 0),
        ofNode_(cluster.nodeOf(ranks - 1) + 1, 0),
        holds_(ofNode_.size(), false), lacks_(ofNode_.size(), 0),
        hasIt_(ranks, false) {}

  /// To every needer, or with `once` to one of them.
  void add(const std::vector<int> &holders, const std::vector<int> &needers,
           double bytes, bool once) {
    for (int rank : holders)
      hasIt_[rank] = holds_[cluster_.nodeOf(rank)] = true;
    int lacking = 0;
    bool isNear = false;
    for (int rank : needers) {
      lacking += !hasIt_[rank];
      isNear = isNear || holds_[cluster_.nodeOf(rank)];
    }
    if (once)
      addOnce(needers, bytes, lacking, isNear);
    else
      addAll(needers, bytes);
    for (int rank : holders)
      hasIt_[rank] = holds_[cluster_.nodeOf(rank)] = false;
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
  void addAll(const std::vector<int> &needers, double bytes) {
    for (int rank : needers) {
      if (hasIt_[rank])
        continue;
      ofRank_[rank] += bytes;
      lacks_[cluster_.nodeOf(rank)] = 1;
    }
    for (int rank : needers) {
      const int node = cluster_.nodeOf(rank);
      // One copy crosses the network.
      if (std::exchange(lacks_[node], 0) == 1 && !holds_[node])
        ofNode_[node] += bytes;
    }
  }

  void addOnce(const std::vector<int> &needers, double bytes, int lacking,
               bool isNear) {
    const int count = static_cast<int>(needers.size());
    if (lacking < count || count == 0)
      return; // stays where it is
    int takers = 0;
    for (int rank : needers)
      takers += !isNear || holds_[cluster_.nodeOf(rank)];
    for (int rank : needers) {
      const int node = cluster_.nodeOf(rank);
      if (isNear && !holds_[node])
        continue;
      ofRank_[rank] += bytes / takers;
      if (!isNear)
        ofNode_[node] += bytes / takers;
    }
  }

  const Cluster &cluster_;
  std::vector<double> ofRank_, ofNode_;
  std::vector<bool> holds_; ///< nodes
  std::vector<int> lacks_;
  std::vector<bool> hasIt_;
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
        {static_cast<double>(elementBytes(model.computeType(p))),
         static_cast<double>(elementBytes(model.gradientType()))});
}

double SwitchEstimator::seconds(SwitchKind kind, const SwitchLayout &from,
                                const SwitchLayout &to) const {
  const bool once = kind == SwitchKind::Gradients;
  // Of an element, all parameters of a pair of classes together.
  std::map<std::pair<int, int>, double> bytes;
  for (size_t p = 0; p < parameters_.size(); ++p)
    bytes[{from.listOf_[p], to.listOf_[p]}] +=
        once ? parameters_[p].gradientBytes : parameters_[p].valueBytes;
  Arrivals arrivals(cluster_, std::max(from.ranks_, to.ranks_));
  std::vector<int> holders, needers;
  for (auto [pair, perElement] : bytes) {
    const SwitchLayout::Lists &before = from.lists_[pair.first];
    const SwitchLayout::Lists &behind = to.lists_[pair.second];
    // What is updated is what is valid then, and where gradients are wanted.
    const auto &has = kind == SwitchKind::First ? before.current : before.boxes;
    const auto &needs = once ? behind.current : behind.boxes;
    const auto rows = bordersOf(has, needs, 0),
               columns = bordersOf(has, needs, 1);
    for (size_t r = 0; r + 1 < rows.size(); ++r)
      for (size_t c = 0; c + 1 < columns.size(); ++c) {
        ranksWith(needs, rows[r], columns[c], needers);
        if (needers.empty())
          continue;
        ranksWith(has, rows[r], columns[c], holders);
        arrivals.add(holders, needers,
                     perElement * static_cast<double>(rows[r + 1] - rows[r]) *
                         static_cast<double>(columns[c + 1] - columns[c]),
                     once);
      }
  }
  return arrivals.seconds();
}

} // namespace dyna
