//===- PartitionLayers.h - The cut of the layers into stages -*- C++ -*-===//
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

/// Returns a cut where it is open which of several costs the layers will have. Each of
/// the costs has a best cut. One of these cuts is the least far, for the costs that suit
/// it least, from the best one. The first cut that is at most `mostWorseCut` times as far
/// is taken, so costs come in the order in which they are likely. A few percent more in a
/// stage can matter less than where that stage stands: with 5+4+4+4+4+4+4+5, even but for
/// 0.4 %, steps of a GPT of 6.7 B take 9 % longer.
std::vector<int>
partitionLayersForAny(const std::vector<std::vector<double>> &costs,
                      int stages);
constexpr double mostWorseCut = 1.08;

/// What a layer takes of one micro-batch in a training step: forward, backward,
/// and what has to be computed again in between. Updates are not counted: they
/// come once per step, not once per micro-batch. The micro-batch has 4096
/// tokens in samples of 1024 (of less, where the model has fewer positions),
/// whatever a run makes of its data: so that every tool finds the same cut.
std::vector<double> layerCosts(const CostModel &costs, const Strategy &strategy,
                               const RecomputeModes &recompute);

/// Returns the layers of each stage if layers cost what they take of `load`, instead of
/// the usual micro-batch. A search compares this cut with the usual one: with long
/// samples, attention takes more beside the embedding and the head.
std::vector<int> layersForLoad(const CostModel &costs, const Strategy &strategy,
                               const RecomputeModes &recompute,
                               const Load &load);

/// A strategy with its layers, and a line for people: the cut and where the
/// costs behind it came from. Empty where nothing was to choose.
struct StageCut {
  Strategy strategy;
  std::string note;
  std::vector<std::string>
      lacking; ///< of which the note tells (LackingCosts.h)
};

/// The strategy with `layers` filled in: as given, or cut by cost. Where the
/// strategy names no recomputation, it is `recompute`, or with `anyMode` one of
/// the three, which is chosen later. Fails where there are more stages than
/// layers.
StatusOr<StageCut>
chooseLayers(const CostModel &costs, Strategy strategy,
             const RecomputeModes &recompute = {plan::RECOMPUTE_NONE},
             bool anyMode = false);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PARTITIONLAYERS_H
