//===- PackForPipeline.h - Packs bins for the shortest step ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H
#define DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H

#include "runtime/base/load/Load.h"
#include "runtime/planner/cut/PartitionMicroBatches.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace dyna {

/// Costs of ragged micro-batches by their load, as PaddedCosts of padded ones. Both are
/// monotone in segments, queries and pairs.
struct RaggedCosts {
  std::function<double(const Load &)> seconds;
  std::function<int64_t(const Load &)> bytes;
};

/// Packs ragged micro-batches with a small (stages - 1) * max t + sum t /
/// replicas. The objective, its `t`, limits and failures are those of
/// `partitionMicroBatches`. (The paper has padded micro-batches only.)
///
/// Few micro-batches cost little to start; many fill and drain a pipeline
/// sooner. So the number is searched: upwards from what first fit needs, in
/// steps of an eighth, and then around the best. For each number, samples with
/// most seconds come first. Each goes to the micro-batch with least seconds
/// that has room. In the best result, samples then leave the micro-batch with
/// most seconds, or change places, while the objective falls.
///
/// This is a heuristic, since the smallest max of two bins is already NP-hard.
/// docs/planner.md has its distance from the optimum. The order is that of
/// `packMicroBatches`. Deterministic. O(n log bins) for each of some 5 to 60
/// numbers tried (`tried` counts them). O(n bins log bins) if memory is so
/// short that most bins are full.
StatusOr<MicroBatchPartition>
packForPipeline(const std::vector<int64_t> &lengths, const RaggedCosts &costs,
                const PartitionOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H
