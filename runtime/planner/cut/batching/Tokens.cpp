//===- Tokens.cpp - Packs samples under a token limit -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Assigns samples to replicas by work, and packs those of each replica into as
// few micro-batches as possible. Costs of stages are not used.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/DealSamples.h"
#include "runtime/planner/cut/PackMicroBatches.h"
#include "runtime/planner/cut/batching/Batchings.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  PackOptions pack = {problem.maxTokens, problem.tokensPerPair};
  MicroBatches microBatches;
  auto dealt =
      dealSamples(problem.lengths, problem.replicas, pack.tokensPerPair);
  for (int replica = 0; replica < problem.replicas; ++replica) {
    std::vector<int64_t> own, lengths;
    std::vector<std::vector<int64_t>> bins;
    for (int64_t sample : dealt[replica])
      if (problem.lengths[sample] > problem.maxTokens) {
        bins.push_back({sample});
      } else {
        own.push_back(sample);
        lengths.push_back(problem.lengths[sample]);
      }
    DYNA_ASSIGN_OR_RETURN(auto packed, packMicroBatches(lengths, pack));
    for (std::vector<int64_t> &bin : packed) {
      for (int64_t &index : bin)
        index = own[index];
      bins.push_back(std::move(bin));
    }
    for (const std::vector<int64_t> &bin : bins) {
      plan::MicroBatch &microBatch = microBatches.emplace_back();
      microBatch.replica = replica;
      for (int64_t sample : bin)
        microBatch.segments.push_back({sample, 0, problem.lengths[sample]});
    }
  }
  return microBatches;
}

} // namespace

extern const BatchingRule batchingTokens = {
    "tokens", "samples end to end, as few micro-batches as hold them", cut};

} // namespace dyna
