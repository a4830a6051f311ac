//===- CutLayers.h - Cuts layers into stages exactly ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Layers in order are cut into a given number of stages, none of them empty.
// The largest sum of costs is as small as possible, within the memory of each
// stage.
//
// Costs are seconds, or parameters (DynPipe, appendix B.3, has both). Bisection
// over all numbers finds the smallest limit of a sum under which a cut exists.
// A cut exists if stages with as many layers as the limit allows reach the last
// layer. Of the cuts within that limit a table finds the one with the least sum
// of squared sums. It has entries only for layers at which a stage can begin.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CUTLAYERS_H
#define DYNA_RUNTIME_PLANNER_CUTLAYERS_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// Returns the number of layers, in order, of each of `stages` stages. Among
/// the cuts with the smallest largest sum it has the least sum of squared sums.
/// Every slow stage delays the step's first and last micro-batches. Among equal
/// ones earlier stages have the most layers: in eight stages of a GPT of 6.7 B,
/// 5+5+4+4+4+4+4+4 is 8 % faster than 5+4+4+4+4+4+5+4. Costs are finite and not
/// negative, and there are at least as many layers as stages. Exact, except for
/// rounding of sums.
///
/// O(64 n + b t) for n layers, if a stage can begin at b layers, summed over
/// stages, and has at most t layers. For even stages b is small, because the
/// limit leaves little room.
std::vector<int> partitionLayers(const std::vector<double> &costs, int stages);

/// Returns the sum of costs of each stage of a cut.
std::vector<double> stageSums(const std::vector<double> &costs,
                              const std::vector<int> &cut);

/// Bytes of layers in stages.
struct LayerBytes {
  std::vector<int64_t> own;      ///< by layer: parameters and their state
  std::vector<int64_t> kept;     ///< by layer: of one micro-batch in flight
  std::vector<int64_t> inFlight; ///< by stage: micro-batches
  std::vector<int64_t> limits;   ///< by stage

  /// Returns the bytes of a layer in a stage.
  int64_t at(int stage, int layer) const {
    return own[layer] + inFlight[stage] * kept[layer];
  }
};

/// Does the same within the bytes of each stage. `waits` are added to the sums, by stage,
/// such as the seconds that a stage waits for its link; empty means none. Fails with
/// ResourceExhausted if no cut has room. If a layer does not fit everywhere alone, each step of the bisection takes O(n t)
/// for each stage.
StatusOr<std::vector<int>>
partitionLayersWithin(const std::vector<double> &costs, int stages,
                      const LayerBytes &bytes,
                      const std::vector<double> &waits = {});

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CUTLAYERS_H
