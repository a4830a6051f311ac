//===- LayerFacts.h - Collects loads and bytes of layers --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ELASTIC_LAYERFACTS_H
#define DYNA_RUNTIME_ELASTIC_LAYERFACTS_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/graph/CutLayers.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

/// Facts by layer, in the states that the cost model has.
struct LayerFacts {
  std::vector<std::string> names;
  std::vector<double> seconds;    ///< of one micro-batch, forward and backward
  std::vector<double> parameters; ///< weights that are not zero
  /// Bytes on one rank: parameters and their state.
  std::vector<int64_t> ownBytes;
  /// Bytes on one rank that a micro-batch keeps from forward to backward.
  std::vector<int64_t> keptBytes;
  /// Bytes on all ranks that move with the layer.
  std::vector<int64_t> stateBytes;
};

/// Returns a graph of the same degrees with a stage for each layer: what a rank has is of
/// one layer. `model` must outlive it.
StatusOr<ExecutableGraph> layerByLayer(const Model &model, Strategy strategy);

/// Returns the facts of all layers under the strategy's degrees, whatever its cut is.
/// A parameter that layers share counts for each of them. Fails if the degrees were not
/// compiled. O(layers * parameters).
StatusOr<LayerFacts> layerFacts(const CostModel &costs,
                                const Strategy &strategy, plan::Recompute mode,
                                const Load &microBatch);

/// Bytes of layers on one rank of a run, whose state is dense.
struct BytesOfLayers {
  std::vector<int64_t> tensors; ///< that stay from step to step, with gradients
  std::vector<int64_t> state;   ///< that move with the layer
};

/// Returns the bytes of all layers under the strategy's degrees, whatever its
/// cut is. A parameter that layers share counts for each of them. So the sum over
/// the layers of a stage is never less than what its ranks have. It is equal if
/// no two of these layers share one. Ranks that share the rows of a layer (ZeRO)
/// count with their mean.
StatusOr<BytesOfLayers> bytesOfLayers(const Model &model,
                                      const Strategy &strategy);

/// Returns the seconds that each stage of a replica waits for messages of one
/// micro-batch: its input, and the gradient of its output.
std::vector<double> linkWaits(const ExecutableGraph &graph,
                              const CostModel &costs, const Load &microBatch);

/// Returns how many micro-batches each of `stages` stages keeps under 1F1B, if its
/// replica has `microBatches`.
std::vector<int64_t> inFlightOf(int stages, int64_t microBatches);

} // namespace dyna

#endif // DYNA_RUNTIME_ELASTIC_LAYERFACTS_H
