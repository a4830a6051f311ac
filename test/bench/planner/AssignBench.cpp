//===- AssignBench.cpp - Samples to strategies, and finding those ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/bench/planner/AssignBench.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/search/StrategyCandidates.h"
#include "runtime/planner/step/AssignStrategies.h"
#include "test/bench/planner/MicroBatchBench.h"
#include "test/runtime/executor/TinyModel.h"

#include <cstdio>

namespace dyna {

/// 60 layers at all tensor degrees of 32 ranks.
static Model modelOf32() {
  TinyOptions tiny;
  tiny.blocks = 60;
  tiny.hidden = 32;
  for (int tp : {2, 4, 8, 16, 32})
    tiny.degrees.insert(tiny.degrees.end(), {{tp, false}, {tp, true}});
  plan::Manifest manifest = tinyManifest(tiny);
  manifest.mutable_facts()->set_positions(32768);
  return *Model::create(manifest);
}

namespace {

/// Each switch takes a tenth of a second.
class FixedSwitches : public StepEstimates {
public:
  explicit FixedSwitches(std::vector<PhaseEstimate> phases)
      : phases_(std::move(phases)) {}
  double phaseSeconds(int graph, const PhaseLengths &phase) const override {
    return phases_[graph].seconds(phase);
  }
  double switchSeconds(const std::vector<int> &graphs) const override {
    return 0.1 * static_cast<double>(graphs.size());
  }

private:
  std::vector<PhaseEstimate> phases_;
};

} // namespace

int benchAssignment(const std::vector<int64_t> &lengths) {
  const Model model = modelOf32();
  const CostModel costs =
      *CostModel::create(model, *CostTable::described("a800-80g:4x8"));
  std::vector<PhaseEstimate> phases;
  for (const char *text : {"dp=4,tp=2,sp=1,pp=4", "dp=4,tp=4,sp=1,pp=2",
                           "dp=2,tp=8,sp=1,pp=2", "dp=1,tp=16,sp=1,pp=2"}) {
    PlanRequest request;
    request.strategy = *parseStrategy(text);
    request.tokensPerBatch = 1 << 20;
    auto policy = choosePolicy(costs, request);
    if (!policy.isOk())
      return std::fprintf(stderr, "%s\n", policy.status().message().c_str()), 1;
    phases.emplace_back(*ExecutableGraph::create(model, policy->strategy),
                        costs, policy->options);
  }
  const FixedSwitches estimates(phases);
  const LengthRanges ranges =
      *parseLengthRanges("a: 0-4096; b: 4097-8192; c: 8193-16384; d: 16385-",
                         {"a", "b", "c", "d"});
  int merged = 0;
  const double ms = medianMs([&] {
    auto assigned = assignSamples(lengths, ranges, estimates);
    merged = assigned.isOk() ? assigned->merged : 0;
    return assigned.isOk();
  });
  std::printf("{\"what\": \"assign\", \"ranks\": 32, \"ranges\": 4, "
              "\"samples\": %zu, \"merged\": %d, \"assign_ms\": %.3f}\n",
              lengths.size(), merged, ms);
  return ms < 0;
}

int benchSearch(const std::vector<int64_t> &lengths) {
  const Model model = modelOf32();
  const CostModel costs =
      *CostModel::create(model, *CostTable::described("a800-80g:4x8"));
  const LengthDistribution distribution(lengths, 512);
  StrategySpace space;
  space.ranks = 32;
  space.memoryBytes = INT64_C(1) << 28;
  space.tokensPerStep = 1 << 20;
  StrategySearch search;
  search.ends = usualEnds(distribution.longest());
  std::string line;
  const double ms = medianMs([&] {
    auto candidates = StrategyCandidates::create(costs, space, distribution);
    if (!candidates.isOk())
      return std::fprintf(stderr, "%s\n",
                          candidates.status().message().c_str()) < 0;
    auto found = searchStrategies(*candidates, distribution, search);
    if (!found.isOk())
      return std::fprintf(stderr, "%s\n", found.status().message().c_str()) < 0;
    line = formatText(
        "\"considered\": %d, \"kept\": %d, \"branches\": %d, \"complete\": "
        "%d, \"ranges\": %d",
        candidates->considered(), candidates->candidates(), found->branches,
        found->complete, found->best.ranges.size());
    return true;
  });
  std::printf("{\"what\": \"search\", \"ranks\": 32, \"lengths\": %zu, %s, "
              "\"search_ms\": %.0f}\n",
              lengths.size(), line.c_str(), ms);
  return ms < 0;
}

} // namespace dyna
