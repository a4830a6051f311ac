//===- SearchRanges.cpp - Searches strategies and ranges for a corpus -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/SearchRanges.h"

#include "runtime/base/text/ParseBytes.h"
#include "runtime/base/text/Text.h"
#include "runtime/planner/search/ChooseStrategies.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/flags/NamedStrategies.h"
#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <set>

namespace dyna {
namespace {

/// Lengths as often as samples have them, but no more than many.
std::vector<int64_t> lengthsOf(const SampleStatistics &samples) {
  constexpr int64_t many = 100000;
  const int64_t share = std::max<int64_t>(samples.samples / many, 1);
  std::vector<int64_t> lengths;
  for (size_t tokens = 1; tokens < samples.counts.size(); ++tokens)
    if (int64_t count = samples.counts[tokens]; count > 0)
      lengths.insert(lengths.end(), (count + share - 1) / share,
                     static_cast<int64_t>(tokens));
  return lengths;
}

} // namespace

StatusOr<int> searchedRanks(const Model &model, const TrainOptions &options) {
  if (options.ranks > 0)
    return static_cast<int>(options.ranks);
  if (launchedProcesses() > 1)
    return launchedProcesses();
  DYNA_ASSIGN_OR_RETURN(auto compiled, namedStrategies(model, ""));
  std::set<int> ranks;
  for (const Strategy &strategy : compiled)
    ranks.insert(strategy.ranks());
  if (ranks.size() == 1)
    return *ranks.begin();
  return Status::invalidArgument(formatText(
      "--ranges search needs --ranks N, the number of ranks to share the work: "
      "%s",
      ranks.empty() ? "no strategies were compiled in that would tell"
                    : "the compiled strategies have different numbers"));
}

StatusOr<FoundRanges> searchRanges(const Model &model,
                                   const TrainOptions &options,
                                   const SampleStatistics &samples, int ranks) {
  DYNA_ASSIGN_OR_RETURN(auto costs, CostModel::open(model, options.costs));
  StrategySpace space;
  space.ranks = ranks;
  space.tokensPerStep = options.tokensPerBatch;
  space.plays = !options.evaluate; // evaluations have other steps
  if (!options.noProgress)
    space.tell = [](const std::string &next) { sayLine("search: " + next); };
  // Samples that do not fit are truncated with a note, as under one strategy.
  space.shortens = true;
  space.request.pipeline = options.pipeline;
  space.request.microBatches = options.microBatches;
  space.request.tokensPerMicroBatch = options.tokensPerMicroBatch;
  space.request.recompute = options.recompute;
  space.request.slices = options.slices;
  if (!options.rankMemory.empty()) {
    DYNA_ASSIGN_OR_RETURN(space.memoryBytes, parseBytes(options.rankMemory));
  }
  std::vector<int64_t> lengths = lengthsOf(samples);
  if (lengths.empty())
    return Status::invalidArgument(
        "--ranges search: the data have no sample to search for");
  DYNA_ASSIGN_OR_RETURN(auto chosen,
                        chooseStrategies(costs, space, std::move(lengths)));
  const FoundStrategies &found = chosen.found();
  const StrategyCandidates &candidates = chosen.candidates();
  FoundRanges result;
  result.strategies = chosen.strategies();
  result.ranges = chosen.ranges();
  result.notes.push_back(formatText(
      "--ranges search: of %d strategies of %d ranks, %d were combined in %d "
      "ways: --strategies \"%s\" --ranges \"%s\"",
      candidates.considered(), ranks, candidates.candidates(), found.branches,
      result.strategies, result.ranges));
  if (options.evaluate)
    return result;
  if (options.costs.empty())
    result.notes.push_back(
        "expected times are estimates, not measured: --profile FILE measures "
        "what --costs FILE reads");
  if (found.best.ranges.size() == 1)
    result.notes.push_back(formatText("a step is expected to take %.3g s under "
                                      "this one strategy",
                                      found.best.seconds()));
  else if (found.bestSingle.home >= 0)
    result.notes.push_back(formatText(
        "a step is expected to take %.3g s (%.3g s of it switches), and %.3g s "
        "under the best single strategy, %s",
        found.best.seconds(), found.best.switches, found.bestSingle.seconds(),
        describeStrategy(candidates.strategy(found.bestSingle.home))));
  if (std::string played = chosen.playedText(); !played.empty()) {
    played.pop_back(); // removes the end of the line
    result.notes.push_back(std::move(played));
  }
  return result;
}

} // namespace dyna
