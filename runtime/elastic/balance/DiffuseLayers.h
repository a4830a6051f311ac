//===- DiffuseLayers.h - Moves layers between neighbours --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Balances stages without a view of all of them, by diffusion (DynPipe, appendix B.3).
// Two neighbours compare their loads. The layer at their border moves if that brings the
// loads closer. The sum of all loads stays, so the variance of the loads falls exactly if
// the squares of these two fall.
//
// The published algorithm moves layers to any rank and appends them there, which is
// another function of the model. Layers keep their order here. The paper's bound of
// rounds holds for neighbours that average their loads, which layers as a whole cannot.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_DIFFUSELAYERS_H
#define DYNA_RUNTIME_ELASTIC_DIFFUSELAYERS_H

#include "runtime/planner/graph/CutLayers.h"

#include <vector>

namespace dyna {

struct DiffusedCut {
  std::vector<int> layers; ///< of each stage
  int64_t rounds =
      0; ///< in which all neighbours compared loads, the last one too
  int64_t moves = 0; ///< of a layer from a stage to its neighbour
};

/// Moves layers from a cut on until no move lowers the variance. Stages keep at least one
/// layer, and no stage gets a layer that is too much for its memory; `bytes` may be null.
/// Costs are finite and not negative.
///
/// Ends, because each move lowers the sum of squares. A round takes O(n) for n layers.
DiffusedCut diffuseLayers(const std::vector<double> &costs,
                          std::vector<int> cut,
                          const LayerBytes *bytes = nullptr);

/// Returns the variance of loads.
double varianceOf(const std::vector<double> &loads);

/// Returns the variance of the loads of stages.
double varianceOf(const std::vector<double> &costs,
                  const std::vector<int> &cut);

/// Returns min(N^2 log(S N / gamma) log N, S N log N / gamma), the bound of the paper's
/// Lemma 2 for N workers and S stages. It has no constant factor, which the paper does
/// not name. `gamma` is the convergence factor.
double roundsOfLemma2(int workers, int stages, double gamma);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_DIFFUSELAYERS_H
