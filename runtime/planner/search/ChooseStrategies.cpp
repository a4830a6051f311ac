//===- ChooseStrategies.cpp - Chooses strategies by lengths ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/ChooseStrategies.h"

#include "runtime/base/text/Text.h"
#include "runtime/base/thread/SayEvery.h"
#include "runtime/planner/search/SimulateChoice.h"

#include <algorithm>

namespace dyna {

bool divides(int64_t tp, const DividedSizes &sizes) {
  return sizes.heads % tp == 0 && sizes.feedForward % tp == 0 &&
         (sizes.kvHeads == 0 || sizes.kvHeads % tp == 0 ||
          tp % sizes.kvHeads == 0);
}

std::string degreesToSearch(int64_t ranks, const DividedSizes &sizes) {
  std::string text;
  for (int64_t tp = 2; tp <= ranks; ++tp)
    for (const char *sp :
         isSearched(tp) && ranks % tp == 0 && divides(tp, sizes)
             ? std::vector<const char *>{"", ",sp=1"}
             : std::vector<const char *>())
      text += formatText("%stp%d%s: tp=%d%s", text.empty() ? "" : "; ", tp,
                         *sp ? "-sp" : "", tp, sp);
  return text;
}

std::vector<int64_t> degreesThatDoNotDivide(int64_t ranks,
                                            const DividedSizes &sizes) {
  std::vector<int64_t> degrees;
  for (int64_t tp = 2; tp <= ranks; ++tp)
    if (isSearched(tp) && ranks % tp == 0 && !divides(tp, sizes))
      degrees.push_back(tp);
  return degrees;
}

StatusOr<int> ranksToSearch(const Cluster &cluster, int64_t asked,
                            const char *flag) {
  const int64_t devices = cluster.devices();
  const int64_t perNode = cluster.description().devices_per_node();
  if (asked < 0 || asked > mostSearchedRanks)
    return Status::invalidArgument(formatText(
        "--ranks expects 1 to %d, but got %d", mostSearchedRanks, asked));
  if (asked == 0 && devices == 0)
    return Status::invalidArgument(
        std::string(flag) +
        " needs to know the devices: --cluster such as a100-40g:4x8, or "
        "`nodes` and `devices_per_node` in the cluster of "
        "--costs");
  if (devices > 0 && asked > devices)
    return Status::invalidArgument(formatText(
        "--ranks is %d, but the cluster has %d devices", asked, devices));
  if (perNode > 0 && asked > perNode && asked % perNode != 0)
    return Status::invalidArgument(
        formatText("--ranks is %d, which are no whole nodes of %d devices: "
                   "give a multiple of %d, or less",
                   asked, perNode, perNode));
  return static_cast<int>(asked > 0 ? asked : devices);
}

static LengthDistribution distributionOf(std::vector<int64_t> lengths,
                                         int64_t tokensPerStep) {
  double tokens = 0;
  for (int64_t length : lengths)
    tokens += static_cast<double>(length);
  const double samples = static_cast<double>(tokensPerStep) *
                         static_cast<double>(lengths.size()) / tokens;
  return LengthDistribution(std::move(lengths), samples);
}

StatusOr<std::vector<AloneEstimate>>
estimateSingles(const CostModel &costs, const StrategySpace &space,
                std::vector<int64_t> lengths) {
  const LengthDistribution distribution =
      distributionOf(std::move(lengths), space.tokensPerStep);
  DYNA_ASSIGN_OR_RETURN(auto candidates,
                        StrategyCandidates::create(costs, space, distribution));
  return candidates.alone();
}

/// Searches strategies for these lengths, after truncation.
static StatusOr<ChosenStrategies> search(const CostModel &costs,
                                         const StrategySpace &space,
                                         std::vector<int64_t> lengths,
                                         int mostRanges, int64_t &held) {
  LengthDistribution distribution =
      distributionOf(std::move(lengths), space.tokensPerStep);
  DYNA_ASSIGN_OR_RETURN(auto candidates,
                        StrategyCandidates::create(costs, space, distribution));
  StrategySearch search;
  search.ends = usualEnds(distribution.longest());
  search.mostRanges = std::min(search.mostRanges, mostRanges);
  auto found = searchStrategies(candidates, distribution, search);
  if (found.status().code() == StatusCode::ResourceExhausted) {
    held = candidates.longestHeld();
    return candidates.lackOfRoom();
  }
  DYNA_RETURN_IF_ERROR(found.status());
  return ChosenStrategies(std::move(candidates), *std::move(found),
                          std::move(distribution));
}

StatusOr<ChosenStrategies> chooseStrategies(const CostModel &costs,
                                            const StrategySpace &space,
                                            std::vector<int64_t> lengths) {
  // Each try allows for the switches that the last one found, so its plans keep
  // more distance to the limit.
  constexpr int mostTries = 4;
  StrategySpace within = space;
  for (plan::Recompute mode : space.recompute)
    if (space.request.recompute == describeRecompute({mode}))
      within.recompute = {mode};
  SayEvery pause(space.tellEvery);
  within.tell = [&](const std::string &next) {
    if (space.tell && pause.isDue())
      space.tell(next);
  };
  for (int attempt = 0;; ++attempt) {
    const int mostRanges =
        attempt < mostTries ? StrategySearch().mostRanges : 1;
    int64_t held = 0;
    within.tell("strategies and ranges are searched");
    auto chosen = search(costs, within, lengths, mostRanges, held);
    if (!chosen.isOk() && space.shortens && held > 0) {
      cutLengths(lengths, held);
      chosen = search(costs, within, lengths, mostRanges, held);
    }
    DYNA_RETURN_IF_ERROR(chosen.status());
    const bool isSet = chosen->found().best.ranges.size() > 1;
    if (!space.plays && (!isSet || within.memoryBytes == 0))
      return chosen;
    std::unique_ptr<SizedSteps> set;
    if (isSet) {
      DYNA_ASSIGN_OR_RETURN(set,
                            sizeSet(costs, within, *chosen, within.request));
      within.passedBytes += set->lackingBytes();
      if (set->lackingBytes() > 0)
        continue;
    }
    if (!space.plays)
      return chosen;
    DYNA_ASSIGN_OR_RETURN(auto played, simulateChoice(costs, within, *chosen,
                                                      set.get(), lengths));
    chosen->take(played);
    return chosen;
  }
}

} // namespace dyna
