//===- ValuesAtHome.cpp - What another graph reads as it lies -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/ValuesAtHome.h"

#include "runtime/plan/PersistentLayout.h"

namespace dyna {

std::vector<std::vector<int64_t>> rowsAtHome(const ExecutableGraph &home,
                                             const ExecutableGraph &graph) {
  const Model &model = home.model();
  std::vector<std::vector<int64_t>> rows(
      graph.ranks(), std::vector<int64_t>(model.parameters(), -1));
  std::vector<const Box *> wanted(graph.ranks());
  for (int p = 0; p < model.parameters(); ++p) {
    const std::vector<RankBox> boxes = graph.boxes(p);
    wanted.assign(graph.ranks(), nullptr);
    for (const RankBox &one : boxes)
      wanted[one.rank] = &one.box;
    const std::vector<RankBox> whole = home.boxes(p);
    const std::vector<RankBox> current = home.currentBoxes(p);
    const int64_t element = elementBytes(typeOf(model, p, valuePart(model, p)));
    for (size_t at = 0; at < whole.size(); ++at) {
      const Box *box = wanted[whole[at].rank];
      const Box &own = whole[at].box;
      if (!box || box->isEmpty() || !current[at].box.contains(*box) ||
          box->begin[1] != own.begin[1] || box->size[1] != own.size[1])
        continue;
      // The buffer of an uneven part is longer than the part.
      if (graph.replicaView(whole[at].rank).elements(p) != box->volume())
        continue;
      const int64_t row = box->begin[0] - own.begin[0];
      if (row * own.size[1] * element % DYNA_BLOCK_ALIGNMENT == 0)
        rows[whole[at].rank][p] = row;
    }
  }
  return rows;
}

std::vector<HeldParameters> heldOf(const ExecutableGraph &home,
                                   const ExecutableGraph &graph) {
  const auto rows = rowsAtHome(home, graph);
  std::vector<HeldParameters> held;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const RankView &view = graph.replicaView(rank);
    auto bytes = [&](Persistent persistent) {
      return persistentLayout(view, persistent, 0, rows[rank]).bytes;
    };
    const int64_t values = bytes(Persistent::Values);
    held.push_back({values, bytes(Persistent::Gradients) - values});
  }
  return held;
}

} // namespace dyna
