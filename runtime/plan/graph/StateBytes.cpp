//===- StateBytes.cpp - Counts bytes of pruned and frozen layers ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/graph/StateBytes.h"

#include "runtime/abi/Sparse.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

/// Returns the bytes of one parameter of the view in a state.
int64_t bytesOf(const RankView &view, int p, const LayerState &state,
                Persistent persistent) {
  const bool isCsr = state.form == WeightForm::Csr;
  auto left = [&](int64_t elements) {
    return isCsr ? survivorsOf(elements, state.sparsity) : elements;
  };
  const int64_t held = left(view.elements(p));
  const int64_t updated =
      state.frozen ? 0 : left(view.updatedElements(p)); // moments and masters
  const int64_t master = elementBytes(view.masterType());
  int64_t bytes = 0;
  auto add = [&](int64_t elements, int64_t element) {
    bytes += dyna_align_block(elements * element);
  };
  add(held, elementBytes(view.computeType(p)));
  if (view.hasCopy(p) && includes(persistent, Persistent::Masters))
    add(updated, master);
  if (includes(persistent, Persistent::Gradients) && !state.frozen)
    add(held, elementBytes(view.gradientType()));
  if (includes(persistent, Persistent::Moments)) {
    for (int moment = 0; moment < 2; ++moment)
      add(updated, master);
    if (!isCsr && (state.form == WeightForm::Masked || view.model().hasMask(p)))
      add(updated, /*element=*/1);
    if (!isCsr && view.model().hasScores(p))
      add(updated, master);
  }
  if (isCsr)
    for (bool isByColumn : {false, true})
      if (!isByColumn || !state.prefix)
        bytes +=
            csrSideBytes(view.rows(p), view.rowElements(p), held, isByColumn);
  return bytes;
}

} // namespace

int64_t csrSideBytes(int64_t rows, int64_t columns, int64_t survivors,
                     bool isByColumn) {
  const int64_t tiles = dyna_sparse_tiles(rows) * dyna_sparse_tiles(columns);
  const int64_t lines = dyna_align_block(tiles * DYNA_SPARSE_TILE);
  int64_t bytes = dyna_align_block((tiles + 1) * csrStartBytes);
  bytes += 2 * lines; // order of lines in the tile, and their counts
  bytes += dyna_align_block(survivors); // depths
  return isByColumn ? bytes + dyna_align_block(survivors * csrPlaceBytes)
                    : bytes;
}

int64_t survivorsOf(int64_t weights, double sparsity) {
  const auto all = static_cast<double>(weights);
  return std::clamp<int64_t>(std::llround(all * (1 - sparsity)),
                             std::min<int64_t>(weights, 1), weights);
}

int64_t persistentBytes(const RankView &view, const LayerStates &states,
                        Persistent persistent) {
  if (states.empty())
    return persistentLayout(view, persistent).bytes;
  int64_t bytes = 0;
  for (int p = 0; p < view.parameters(); ++p)
    if (view.holds(p))
      bytes +=
          bytesOf(view, p, parameterState(view.model(), states, p), persistent);
  return bytes;
}

} // namespace dyna
