//===- ValuesAtHome.cpp - Finds values that other graphs can read at home -===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/ValuesAtHome.h"

#include "runtime/plan/graph/PersistentLayout.h"

namespace dyna {

namespace {

/// Bytes of what layers read of a parameter.
int64_t elementOf(const Model &model, int p) {
  return elementBytes(typeOf(model, p, valuePart(model, p)));
}

/// Returns the row of one parameter.
int64_t rowAtHome(const ExecutableGraph &home, const ExecutableGraph &graph,
                  int rank, int p) {
  const RankView &view = graph.replicaView(rank);
  const RankView &other = home.replicaView(rank);
  if (!view.holds(p) || !other.holds(p))
    return -1;
  const RankPart::Parameter &own = view.place(p), &there = other.place(p);
  // With an uneven part the buffer is longer than the part.
  if (own.rows * own.rowElements == 0 ||
      view.elements(p) != own.rows * own.rowElements ||
      own.firstColumn != there.firstColumn ||
      own.rowElements != there.rowElements)
    return -1;
  int64_t begin = 0, end = there.rows;
  if (home.strategy().zero && !home.model().isFrozen(p)) {
    const auto [index, count] = home.holderIndex(p, rank);
    begin = partBegin(there.rows, count, index);
    end = begin + partSize(there.rows, count, index);
  }
  const int64_t row = own.firstRow - there.firstRow;
  const bool isCurrent = row >= begin && row + own.rows <= end;
  return isCurrent && row * own.rowElements * elementOf(view.model(), p) %
                              DYNA_BLOCK_ALIGNMENT ==
                          0
             ? row
             : -1;
}

} // namespace

std::vector<std::vector<int64_t>> rowsAtHome(const ExecutableGraph &home,
                                             const ExecutableGraph &graph) {
  std::vector<std::vector<int64_t>> rows(graph.ranks());
  for (int rank = 0; rank < graph.ranks(); ++rank)
    for (int p = 0; p < home.model().parameters(); ++p)
      rows[rank].push_back(rowAtHome(home, graph, rank, p));
  return rows;
}

std::vector<HeldParameters> heldOf(const ExecutableGraph &home,
                                   const ExecutableGraph &graph) {
  const Model &model = home.model();
  std::vector<HeldParameters> held(graph.ranks());
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const RankView &view = graph.replicaView(rank);
    for (int p = 0; p < model.parameters(); ++p) {
      if (!view.holds(p))
        continue;
      // Align as persistentLayout does.
      if (!model.isFrozen(p))
        held[rank].gradients += dyna_align_block(
            view.elements(p) * elementBytes(model.gradientType()));
      if (rowAtHome(home, graph, rank, p) < 0)
        held[rank].values +=
            dyna_align_block(view.elements(p) * elementOf(model, p));
    }
  }
  return held;
}

} // namespace dyna
