//===- PackForPipeline.h - Ragged bins for the least time of a step -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H
#define DYNA_RUNTIME_PLANNER_PACKFORPIPELINE_H

#include "runtime/planner/cut/PartitionMicroBatches.h"

#include <cstdint>
#include <functional>
#include <vector>

namespace dyna {

/// What a ragged micro-batch is made of. A token looks at `squares` / `tokens`
/// others on average where attention is whole; where it is causal, the pairs
/// are (squares + tokens) / 2.
struct RaggedShape {
  int64_t samples = 0;
  int64_t tokens = 0;
  int64_t squares = 0; ///< sum of the squares of the lengths
};

/// As PaddedCosts, of ragged micro-batches: monotone in all three.
struct RaggedCosts {
  std::function<double(const RaggedShape &)> seconds;
  std::function<int64_t(const RaggedShape &)> bytes;
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
