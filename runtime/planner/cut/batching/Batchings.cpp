//===- Batchings.cpp - Lists batchings --------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/batching/Batchings.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/cut/BalanceReplicas.h"

#include <algorithm>
#include <limits>

namespace dyna {

#define DYNA_BATCHING(Id) extern const BatchingRule batching##Id;
#include "runtime/planner/cut/batching/Batchings.def"

const BatchingRule &ruleOf(Batching batching) {
  switch (batching) {
#define DYNA_BATCHING(Id)                                                      \
  case Batching::Id:                                                           \
    return batching##Id;
#include "runtime/planner/cut/batching/Batchings.def"
  }
  __builtin_unreachable();
}

const std::vector<Batching> &allBatchings() {
  static const std::vector<Batching> all = {
#define DYNA_BATCHING(Id) Batching::Id,
#include "runtime/planner/cut/batching/Batchings.def"
  };
  return all;
}

std::vector<std::string> batchingNames() {
  std::vector<std::string> names;
  for (Batching batching : allBatchings())
    names.push_back(ruleOf(batching).name);
  return names;
}

StatusOr<Batching> findBatching(const std::string &name) {
  std::string names;
  for (Batching batching : allBatchings()) {
    if (name == ruleOf(batching).name)
      return batching;
    names += (names.empty() ? "" : ", ") + std::string(ruleOf(batching).name);
  }
  return Status::invalidArgument("the ways to make micro-batches are " + names +
                                 ", but got '" + name + "'");
}

Status checkRanged(Batching batching) {
  const BatchingRule &rule = ruleOf(batching);
  if (!rule.joins)
    return Status::ok();
  return Status::invalidArgument(formatText(
      "--ranges deals samples by their lengths, but micro-batches of '%s' join "
      "them to long rows before: choose '%s', whose samples stay apart, or one "
      "strategy for all",
      rule.name, ruleOf(Batching::PackedMasked).name));
}

PartitionOptions partitionOptions(const BatchingProblem &problem) {
  PartitionOptions options;
  options.stages = problem.stages;
  options.replicas = problem.replicas;
  options.shareBytes = problem.share;
  options.limitBytes = problem.limit;
  return options;
}

int64_t heldWithin(const BatchingProblem &problem, const Load &load) {
  return load.segments > 1 && load.queries > problem.maxTokens
             ? std::numeric_limits<int64_t>::max()
             : problem.held(load);
}

StatusOr<MicroBatchPartition>
partitionByLength(const BatchingProblem &problem) {
  auto ragged = [](const PaddedShape &shape) {
    return times(loadOfSample(shape.longest.tokens), shape.samples);
  };
  PaddedCosts costs;
  costs.seconds = [&](const PaddedShape &shape) {
    return problem.seconds(ragged(shape));
  };
  costs.bytes = [&](const PaddedShape &shape) {
    return heldWithin(problem, ragged(shape));
  };
  std::vector<SampleLength> lengths;
  for (int64_t length : problem.lengths)
    lengths.push_back({length, 0});
  return partitionMicroBatches(lengths,
                               orderSamples(lengths, SampleOrder::Length),
                               costs, partitionOptions(problem));
}

MicroBatches dealMicroBatches(const BatchingProblem &problem,
                              const MicroBatchPartition &partition, bool pads) {
  MicroBatches microBatches;
  Dealt dealt = balanceReplicas(partition.seconds, problem.replicas);
  for (int replica = 0; replica < problem.replicas; ++replica)
    for (int64_t number : dealt[replica]) {
      plan::MicroBatch &microBatch = microBatches.emplace_back();
      microBatch.replica = replica;
      int64_t longest = 0;
      for (int64_t sample : partition.microBatches[number]) {
        microBatch.segments.push_back({sample, 0, problem.lengths[sample]});
        longest = std::max(longest, problem.lengths[sample]);
      }
      for (plan::Segment &segment : microBatch.segments)
        segment.length = pads ? longest : segment.length;
    }
  return microBatches;
}

} // namespace dyna
