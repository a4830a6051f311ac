//===- PartitionLayers.h - Cuts a model's layers into stages ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PARTITIONLAYERS_H
#define DYNA_RUNTIME_PLANNER_PARTITIONLAYERS_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/model/Strategy.h"
#include "runtime/planner/graph/CutLayers.h"
#include "runtime/planner/request/RecomputeModes.h"

#include <vector>

namespace dyna {

/// Returns a cut if it is unknown which of several costs the layers will have.
/// Each of the costs has a best cut. A cut's regret is its largest distance
/// from the best cut, over all costs. The smallest regret of these cuts is the
/// reference. The first cut with a regret of at most `mostWorseCut` times the
/// reference is returned, so costs come in the order of their likelihood.
///
/// A few percent more in a stage can matter less than the position of that
/// stage. With 5+4+4+4+4+4+4+5, even except for 0.4 %, steps of a GPT of 6.7 B
/// take 9 % longer.
std::vector<int>
partitionLayersForAny(const std::vector<std::vector<double>> &costs,
                      int stages);
constexpr double mostWorseCut = 1.08;

/// Returns the seconds of each layer for one micro-batch in a training step:
/// forward, backward, and the recomputation between. Updates are not counted,
/// because they come once per step. The micro-batch has 4096 tokens in samples
/// of 1024 (or the model's positions, if fewer), whatever the data of a run. So
/// every tool finds the same cut.
std::vector<double> layerCosts(const CostModel &costs, const Strategy &strategy,
                               const RecomputeModes &recompute);

/// Returns the layers of each stage if layers cost what they take of `load`, instead of
/// the usual micro-batch. A search compares this cut with the usual one: with long
/// samples, attention takes more beside the embedding and the head.
std::vector<int> layersForLoad(const CostModel &costs, const Strategy &strategy,
                               const RecomputeModes &recompute,
                               const Load &load);

/// A strategy with its layers, and a line for people: the cut and the source of
/// its costs. Empty where nothing was to choose.
struct StageCut {
  Strategy strategy;
  std::string note;
  /// Functions without costs, which the note lists (LackingCosts.h).
  std::vector<std::string> lacking;
};

/// Returns the strategy with `layers` filled in: as given, or cut by cost. If
/// the strategy names no recomputation, it is `recompute`. With `anyMode` it is
/// one of the three modes, which is chosen later. Fails if there are more
/// stages than layers.
StatusOr<StageCut>
chooseLayers(const CostModel &costs, Strategy strategy,
             const RecomputeModes &recompute = {plan::RECOMPUTE_NONE},
             bool anyMode = false);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PARTITIONLAYERS_H
