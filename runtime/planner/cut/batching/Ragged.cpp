//===- Ragged.cpp - Packs ragged bins by seconds ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Micro-batches of small (stages - 1) * max t + sum t / replicas
// (PackForPipeline.h), dealt to the replicas by their seconds.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/batching/Batchings.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  RaggedCosts costs;
  costs.seconds = problem.seconds;
  costs.bytes = [&](const Load &load) { return heldWithin(problem, load); };
  PartitionOptions options = partitionOptions(problem);
  options.multipleOf = problem.replicas;
  DYNA_ASSIGN_OR_RETURN(auto partition,
                        packForPipeline(problem.lengths, costs, options));
  return dealMicroBatches(problem, partition, false);
}

/// Returns the cut of `padded`, without its padding.
StatusOr<MicroBatches> cutByLength(const BatchingProblem &problem) {
  DYNA_ASSIGN_OR_RETURN(auto partition, partitionByLength(problem));
  for (size_t m = 0; m < partition.microBatches.size(); ++m) {
    Load load;
    for (int64_t sample : partition.microBatches[m])
      load += loadOfSample(problem.lengths[sample]);
    partition.seconds[m] = problem.seconds(load);
  }
  return dealMicroBatches(problem, partition, false);
}

} // namespace

extern const BatchingRule batchingRagged = {
    "ragged",   "samples end to end, micro-batches of like time",
    cut,        true,
    false,      false,
    cutByLength};

} // namespace dyna
