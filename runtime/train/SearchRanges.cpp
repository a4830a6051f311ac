//===- SearchRanges.cpp - Strategies that a corpus asks for ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/SearchRanges.h"

#include "runtime/base/ParseBytes.h"
#include "runtime/base/Text.h"
#include "runtime/planner/StrategyCandidates.h"

#include <algorithm>

namespace dyna {
namespace {

/// Lengths as often as samples have them, but no more than many.
LengthDistribution distributionOf(const SampleStatistics &samples,
                                  int64_t tokensPerStep) {
  constexpr int64_t many = 100000;
  const int64_t share = std::max<int64_t>(samples.samples / many, 1);
  std::vector<int64_t> lengths;
  for (size_t tokens = 0; tokens < samples.counts.size(); ++tokens)
    if (int64_t count = samples.counts[tokens]; count > 0)
      lengths.insert(lengths.end(), (count + share - 1) / share,
                     static_cast<int64_t>(tokens));
  return LengthDistribution(std::move(lengths),
                            static_cast<double>(tokensPerStep) /
                                std::max(samples.meanTokens(), 1.0));
}

} // namespace

StatusOr<FoundRanges> searchRanges(const Model &model,
                                   const TrainOptions &options,
                                   const SampleStatistics &samples, int ranks) {
  DYNA_ASSIGN_OR_RETURN(auto costs, CostModel::open(model, options.costs));
  StrategySpace space;
  space.ranks = ranks;
  space.tokensPerStep = options.tokensPerBatch;
  if (!options.rankMemory.empty()) {
    DYNA_ASSIGN_OR_RETURN(space.memoryBytes, parseBytes(options.rankMemory));
  }
  const LengthDistribution lengths =
      distributionOf(samples, options.tokensPerBatch);
  DYNA_ASSIGN_OR_RETURN(auto candidates,
                        StrategyCandidates::create(costs, space, lengths));
  StrategySearch search;
  search.ends = usualEnds(lengths.longest());
  DYNA_ASSIGN_OR_RETURN(auto found,
                        searchStrategies(candidates, lengths, search));
  FoundRanges result;
  const std::vector<FoundRange> &ranges = found.best.ranges;
  for (size_t index = 0; index < ranges.size(); ++index) {
    const std::string name = formatText("s%d", index + 1);
    Strategy strategy = candidates.strategy(ranges[index].candidate);
    strategy.name = name;
    const bool isLast = ranges[index].last >= lengths.longest();
    result.strategies += (index ? "; " : "") + describeStrategy(strategy);
    result.ranges +=
        (index ? "; " : "") + name + ": " +
        std::to_string(ranges[index].first) + "-" +
        (isLast ? std::string() : std::to_string(ranges[index].last));
  }
  result.notes.push_back(formatText(
      "--ranges search: of %d strategies of %d ranks, %d were combined in %d "
      "ways: --strategies \"%s\" --ranges \"%s\"",
      candidates.considered(), ranks, candidates.candidates(), found.branches,
      result.strategies, result.ranges));
  if (found.bestSingle.home >= 0)
    result.notes.push_back(formatText(
        "a step is expected to take %.3g s (%.3g s of it switches), and %.3g s "
        "under the best single strategy, %s",
        found.best.seconds(), found.best.switches, found.bestSingle.seconds(),
        describeStrategy(candidates.strategy(found.bestSingle.home))));
  return result;
}

} // namespace dyna
