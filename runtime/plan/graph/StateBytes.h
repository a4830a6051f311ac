//===- StateBytes.h - Counts bytes of pruned and frozen layers ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Counts the bytes that a rank keeps of its parameters and of micro-batches, if
// layers have states (LayerState.h). A dense weight in f32 has 16 bytes: value,
// gradient and two moments. A masked weight has one more, its mask. A weight in
// CSR has, for each survivor,
//
//     the value that layer functions read    4 bytes in f32, 2 in bf16
//     the gradient                           4, or 2
//     the master, if the value is a copy     4
//     both moments                           8
//     its depth in the index by rows         1
//     its depth and place by columns         3
//
// In f32 these are 20 bytes. Each of the two indices has 264 bytes for a tile
// of 128 x 128 weights (runtime/abi/Sparse.h). So the mean is 2.03 bytes at 90
// %. A frozen parameter has the value and the indices alone. A layer in a
// frozen prefix has no index by columns, and keeps nothing from forward.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_STATEBYTES_H
#define DYNA_RUNTIME_PLAN_STATEBYTES_H

#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/model/LayerState.h"

namespace dyna {

/// Bytes of the begin of a tile, and of the place of a survivor in its tile.
constexpr int64_t csrStartBytes = 8, csrPlaceBytes = 2;

/// Returns the bytes of one side of the index of a weight [rows, columns].
int64_t csrSideBytes(int64_t rows, int64_t columns, int64_t survivors,
                     bool isByColumn);

/// Returns how many of `weights` weights survive: at least one of any.
int64_t survivorsOf(int64_t weights, double sparsity);

/// Returns the bytes of a rank's parameters and their state. Without states, these are
/// those of `persistentLayout`. O(layers * parameters).
int64_t persistentBytes(const RankView &view, const LayerStates &states,
                        Persistent persistent = Persistent::Training);

/// Returns the bytes that a layer keeps of a micro-batch from forward to backward.
inline int64_t keptBytes(const RankView &view, const LayerStates &states,
                         int layer, plan::Recompute mode, const Load &load) {
  return !view.hasBackward(layer) || (!states.empty() && states[layer].prefix)
             ? 0
             : view.keptBytes(layer, mode, load);
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_STATEBYTES_H
