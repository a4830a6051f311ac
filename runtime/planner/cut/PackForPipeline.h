//===- PackForPipeline.h - Ragged bins for the least time of a step -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H
#define DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H

#include "runtime/base/Load.h"
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

/// Ragged micro-batches with a small (stages - 1) * max t + sum t / replicas,
/// the objective of `partitionMicroBatches`, with its `t`, limits and failures:
/// the paper has padded micro-batches only. Few of them cost little to start,
/// many fill and drain a pipeline sooner: their number is searched, from what
/// first fit needs upwards in steps of an eighth, and then around the best, and
/// for each number samples are dealt, those with most seconds first, to the
/// micro-batch with least that has room. In the best, samples then leave the
/// micro-batch with most seconds, or change places, while the objective falls.
///
/// A heuristic (already the smallest max of two bins is NP-hard); how near it
/// comes is in docs/planner.md. Order as of `packMicroBatches`. Deterministic.
/// O(n log bins) for each of some 5 to 60 numbers tried (`tried` counts them),
/// O(n bins log bins) where memory is so short that most bins are full.
StatusOr<MicroBatchPartition>
packForPipeline(const std::vector<int64_t> &lengths, const RaggedCosts &costs,
                const PartitionOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H
