//===- SwitchCases.cpp - Random switches, and what carries them out -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/planner/switch/SwitchCases.h"

#include "runtime/base/text/Text.h"
#include "runtime/layout/Layout.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

namespace dyna {
namespace {

/// Replicas, stages and shards on some of the ranks.
struct DrawnMesh {
  int dp, pp, tp;
  bool zero;
  std::vector<int> ranks; ///< of place (d * pp + p) * tp + t

  int rankAt(int d, int p, int t) const { return ranks[(d * pp + p) * tp + t]; }
};

DrawnMesh drawMesh(Draw &draw, int ranks) {
  DrawnMesh mesh = {};
  do {
    mesh.dp = 1 << draw.below(4);
    mesh.pp = 1 + draw.below(4);
    mesh.tp = 1 + draw.below(4);
  } while (mesh.dp * mesh.pp * mesh.tp > ranks);
  mesh.zero = draw.below(2) == 0;
  std::vector<int> all(ranks);
  std::iota(all.begin(), all.end(), 0);
  // Some order of the axes, from some rank on; or any ranks at all.
  const int count = mesh.dp * mesh.pp * mesh.tp;
  if (draw.below(4) == 0) {
    for (int i = ranks - 1; i > 0; --i)
      std::swap(all[i], all[draw.below(i + 1)]);
    mesh.ranks.assign(all.begin(), all.begin() + count);
    return mesh;
  }
  const int first = draw.below(ranks - count + 1);
  const int sizes[] = {mesh.dp, mesh.pp, mesh.tp};
  int axes[] = {0, 1, 2}; // major to minor
  for (int i = 2; i > 0; --i)
    std::swap(axes[i], axes[draw.below(i + 1)]);
  for (int place = 0; place < count; ++place) {
    const int at[] = {place / (mesh.pp * mesh.tp), place / mesh.tp % mesh.pp,
                      place % mesh.tp};
    int rank = 0;
    for (int axis : axes)
      rank = rank * sizes[axis] + at[axis];
    mesh.ranks.push_back(first + rank);
  }
  return mesh;
}

/// How one tensor lies: its stages, and the dimension that the shards share (-1:
/// none), `copies` of them having the same part.
struct DrawnLayout {
  std::vector<int> stages;
  int split, copies;
};

DrawnLayout drawLayout(Draw &draw, const DrawnMesh &mesh) {
  DrawnLayout layout;
  layout.stages = {draw.below(mesh.pp)};
  if (int other = draw.below(mesh.pp);
      other != layout.stages[0] && draw.below(3) == 0)
    layout.stages.push_back(other);
  layout.split = draw.below(3) - 1;
  do
    layout.copies = 1 + draw.below(mesh.tp);
  while (mesh.tp % layout.copies != 0);
  return layout;
}

std::vector<RankBox> boxesOf(const DrawnMesh &mesh, const DrawnLayout &layout,
                             int64_t rows, int64_t columns, bool dealt) {
  std::vector<RankBox> boxes;
  const int64_t holders = mesh.dp * static_cast<int64_t>(layout.stages.size());
  for (int d = 0; d < mesh.dp; ++d)
    for (size_t s = 0; s < layout.stages.size(); ++s)
      for (int t = 0; t < mesh.tp; ++t) {
        Box box = Box::whole({rows, columns});
        if (layout.split >= 0) {
          const int64_t size = box.size[layout.split];
          const int64_t parts = mesh.tp / layout.copies;
          box.begin[layout.split] = partBegin(size, parts, t / layout.copies);
          box.size[layout.split] = partSize(size, parts, t / layout.copies);
        }
        if (dealt) {
          const int64_t index = d * static_cast<int64_t>(layout.stages.size()) +
                                static_cast<int64_t>(s);
          const int64_t size = box.size[0];
          box.begin[0] += partBegin(size, holders, index);
          box.size[0] = partSize(size, holders, index);
        }
        boxes.push_back({mesh.rankAt(d, layout.stages[s], t), std::move(box)});
      }
  return boxes;
}

/// What the places of one rank hold of one tensor: at each element its number
/// plus one, how often it was written and by which bucket.
struct Place {
  std::vector<int64_t> values;
  std::vector<int> writes, buckets;

  void resize(int64_t elements) {
    values.assign(elements, 0);
    writes.assign(elements, 0);
    buckets.assign(elements, -1);
  }
};

/// Whether one bucket waits for another; all wait for what was there (-1).
bool waitsFor(const SwitchPlan &plan, int bucket, int other) {
  do
    bucket = plan.buckets[bucket].after;
  while (bucket >= 0 && bucket != other);
  return bucket == other || other < 0;
}

template <typename Visit>
void forElements(const Box &box, int64_t columns, Visit visit) {
  for (int64_t r = box.begin[0]; r < box.begin[0] + box.size[0]; ++r)
    for (int64_t c = box.begin[1]; c < box.begin[1] + box.size[1]; ++c)
      visit(r * columns + c);
}

} // namespace

SwitchCase drawSwitch(Draw &draw) {
  SwitchCase one;
  one.network.ranks = 1 + draw.below(16);
  one.network.ranksPerNode = 1 + draw.below(5);
  one.network.insideRate = 8;
  one.network.betweenRate = 1;
  const DrawnMesh from = drawMesh(draw, one.network.ranks);
  const DrawnMesh to = drawMesh(draw, one.network.ranks);
  const int count = 1 + draw.below(6);
  for (int i = 0; i < count; ++i) {
    SwitchTensor tensor;
    tensor.parameter = i;
    tensor.elementBytes = 1 << draw.below(4);
    const int64_t rows = 1 + draw.below(9);
    const int64_t columns = draw.below(3) == 0 ? 1 : 1 + draw.below(7);
    if (draw.below(4) == 0)
      tensor.delivery = Delivery::Once;
    // Copies of a part are equal, so that one of them may be what is there.
    tensor.from =
        boxesOf(from, drawLayout(draw, from), rows, columns, from.zero);
    tensor.to = boxesOf(to, drawLayout(draw, to), rows, columns,
                        to.zero && draw.below(2) == 0);
    one.tensors.push_back(tensor);
    // Layers that lie alike.
    for (int more = draw.below(3); more > 0; --more)
      one.tensors.push_back(tensor);
  }
  return one;
}

std::string carryOut(const std::vector<SwitchTensor> &tensors, int ranks,
                     const SwitchPlan &plan) {
  struct Lying {
    int64_t rows = 0, columns = 0;
    std::vector<Place> before, behind; ///< by rank
  };
  std::vector<Lying> all(tensors.size());
  for (size_t t = 0; t < tensors.size(); ++t) {
    Lying &one = all[t];
    for (const auto *boxes : {&tensors[t].from, &tensors[t].to})
      for (const RankBox &box : *boxes) {
        one.rows = std::max(one.rows, box.box.begin[0] + box.box.size[0]);
        one.columns = std::max(one.columns, box.box.begin[1] + box.box.size[1]);
      }
    one.before.resize(ranks);
    one.behind.resize(ranks);
    for (int rank = 0; rank < ranks; ++rank) {
      one.before[rank].resize(one.rows * one.columns);
      one.behind[rank].resize(one.rows * one.columns);
    }
    for (const auto &[rank, box] : tensors[t].from)
      forElements(box, one.columns, [&, rank = rank](int64_t element) {
        one.before[rank].values[element] = element + 1;
      });
  }
  // By bucket, rank and tensor.
  std::map<std::tuple<int, int, int>, Place> passing;
  for (size_t b = 0; b < plan.buckets.size(); ++b) {
    const int index = static_cast<int>(b);
    for (const SwitchTransfer &one : plan.buckets[b].transfers) {
      Lying &tensor = all[one.tensor];
      const Place &source =
          one.source == SwitchPlace::Old ? tensor.before[one.from]
          : one.source == SwitchPlace::New
              ? tensor.behind[one.from]
              : passing[{plan.buckets[b].after, one.from, one.tensor}];
      Place &target = one.target == SwitchPlace::New
                          ? tensor.behind[one.to]
                          : passing[{index, one.to, one.tensor}];
      if (target.values.empty())
        target.resize(tensor.rows * tensor.columns);
      std::string wrong;
      forElements(one.box, tensor.columns, [&](int64_t element) {
        if (source.values.empty() || source.values[element] != element + 1 ||
            !waitsFor(plan, index, source.buckets[element]))
          wrong = formatText("bucket %d: rank %d does not have element %d of "
                             "tensor %d",
                             index, one.from, element, one.tensor);
        target.values[element] = element + 1;
        ++target.writes[element];
        target.buckets[element] = index;
      });
      if (!wrong.empty())
        return wrong;
    }
  }
  for (size_t t = 0; t < tensors.size(); ++t) {
    const Lying &one = all[t];
    std::vector<int> needed(one.rows * one.columns, 0), come = needed;
    for (int rank = 0; rank < ranks; ++rank) {
      std::vector<bool> mine(one.rows * one.columns, false);
      for (const RankBox &box : tensors[t].to)
        if (box.rank == rank)
          forElements(box.box, one.columns,
                      [&](int64_t element) { mine[element] = true; });
      for (size_t e = 0; e < mine.size(); ++e) {
        const int writes = one.behind[rank].writes[e];
        needed[e] += static_cast<int>(mine[e]);
        come[e] += writes;
        if (writes > (mine[e] ? 1 : 0) ||
            (tensors[t].delivery == Delivery::All && mine[e] && writes == 0))
          return formatText("element %d of tensor %d comes %d times to rank %d",
                            e, t, writes, rank);
      }
    }
    if (tensors[t].delivery == Delivery::Once)
      for (size_t e = 0; e < come.size(); ++e)
        if (come[e] != std::min(needed[e], 1))
          return formatText("element %d of tensor %d comes %d times", e, t,
                            come[e]);
  }
  return "";
}

SwitchNetwork nodesOf(int nodes, int ranksPerNode) {
  SwitchNetwork network;
  network.ranks = nodes * ranksPerNode;
  network.ranksPerNode = ranksPerNode;
  network.insideRate = 8;
  network.betweenRate = 1;
  return network;
}

SwitchTensor bytesOn(std::vector<int> from, std::vector<int> to,
                     int64_t bytes) {
  SwitchTensor tensor;
  tensor.elementBytes = 1;
  for (int rank : from)
    tensor.from.push_back({rank, Box::whole({bytes, 1})});
  for (int rank : to)
    tensor.to.push_back({rank, Box::whole({bytes, 1})});
  return tensor;
}

SwitchPlan planOf(const SwitchCase &one, const SwitchOptions &options) {
  auto plan = planSwitch(one.tensors, one.network, options);
  EXPECT_TRUE(plan.isOk()) << plan.status().message();
  return plan.isOk() ? std::move(*plan) : SwitchPlan();
}

std::string refusalOf(const SwitchCase &one, const SwitchPlan &plan) {
  return checkSwitch(one.tensors, one.network.ranks, plan).message();
}

} // namespace dyna
