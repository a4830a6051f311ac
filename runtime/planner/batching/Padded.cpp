//===- Padded.cpp - The best cut of samples in order of length -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// DynaPipe (EuroSys'24), section 4: samples in order of length are cut where
// (stages - 1) * max t + sum t / replicas is smallest; those of a micro-batch are
// as long as its longest. Micro-batches are dealt to the replicas by their
// seconds.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/batching/Batchings.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  auto ragged = [](const PaddedShape &shape) -> RaggedShape {
    int64_t length = shape.longest.tokens, tokens = shape.samples * length;
    return {shape.samples, tokens, tokens * length};
  };
  PaddedCosts costs;
  costs.seconds = [&](const PaddedShape &shape) {
    return problem.seconds(ragged(shape));
  };
  costs.bytes = [&](const PaddedShape &shape) {
    return loadWithin(problem, ragged(shape));
  };
  std::vector<SampleLength> lengths;
  for (int64_t length : problem.lengths)
    lengths.push_back({length, 0});
  DYNA_ASSIGN_OR_RETURN(
      auto partition,
      partitionMicroBatches(lengths, orderSamples(lengths, SampleOrder::Length),
                            costs, partitionOptions(problem)));
  return dealMicroBatches(problem, partition, true);
}

} // namespace

extern const BatchingRule batchingPadded = {
    "padded", "samples of like length, as long as the longest of them", cut,
    true, true};

} // namespace dyna
