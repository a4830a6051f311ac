//===- RankMemory.cpp - Sizes the dynamic regions of ranks ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/RankMemory.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/StateBytes.h"

#include <algorithm>

namespace dyna {

StatusOr<DynamicRegions> sizeDynamicRegions(const Planner &planner,
                                            const PlanOptions &options,
                                            Persistent persistent,
                                            int64_t rankBytes, bool atLeast) {
  const bool training = includes(persistent, Persistent::Gradients);
  DynamicRegions regions;
  DYNA_ASSIGN_OR_RETURN(auto most,
                        planner.largestDynamicBytes(options, training));
  regions.bytes = regions.most = std::move(most);
  if (rankBytes < 0)
    return regions;
  DYNA_ASSIGN_OR_RETURN(auto least,
                        planner.leastDynamicBytes(options, training));
  const ExecutableGraph &graph = planner.graph();
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const int64_t held = persistentBytes(
        graph.rankView(rank), planner.costs().layerStates(), persistent);
    const int64_t room = rankBytes - held;
    if (room < least[rank] && !atLeast)
      return Status::resourceExhausted(formatText(
          "a rank may take %s, but rank %d needs %s at least: %s "
          "for parameters "
          "and their state, %s for a micro-batch of %d tokens",
          formatBytes(rankBytes), rank, formatBytes(held + least[rank]),
          formatBytes(held), formatBytes(least[rank]), options.mostTokens()));
    regions.bytes[rank] = std::max(std::min(regions.most[rank], room),
                                   std::min(least[rank], regions.most[rank]));
  }
  return regions;
}

//===----------------------------------------------------------------------===//
// Tokens that there is room for
//===----------------------------------------------------------------------===//

StatusOr<std::vector<int64_t>> LeastRegions::of(int64_t microBatch,
                                                int64_t longest) {
  // Samples that are no longer than a micro-batch change nothing.
  longest = std::max(microBatch, longest);
  auto [found, isNew] = known_.try_emplace({microBatch, longest});
  if (!isNew)
    return found->second;
  PlanOptions options = options_;
  options.maxTokensPerMicroBatch = microBatch;
  options.longestSample = longest > microBatch ? longest : 0;
  auto ofRanks = planner_.leastDynamicBytes(options, training_);
  if (!ofRanks.isOk()) {
    known_.erase(found);
    return ofRanks.status();
  }
  const ExecutableGraph &graph = planner_.graph();
  found->second.resize(graph.ranksPerReplica());
  for (int rank = 0; rank < graph.ranks(); ++rank)
    found->second[graph.indexInReplica(rank)] = (*ofRanks)[rank];
  return found->second;
}

StatusOr<bool> LeastRegions::fit(const ExecutableGraph &graph,
                                 const std::vector<int64_t> &room,
                                 int64_t microBatch, int64_t longest) {
  DYNA_ASSIGN_OR_RETURN(auto least, of(microBatch, longest));
  for (int rank = 0; rank < graph.ranks(); ++rank)
    if (least[graph.indexInReplica(rank)] > room[rank])
      return false;
  return true;
}

/// Returns the largest number of tokens from `low` to `high` that fits. `low`
/// must fit; it is not tried.
template <typename Fits>
static StatusOr<int64_t> mostFitting(int64_t low, int64_t high, Fits fits) {
  DYNA_ASSIGN_OR_RETURN(bool all, fits(high));
  if (all)
    return high;
  while (high - low > 1) {
    const int64_t middle = low + (high - low) / 2;
    DYNA_ASSIGN_OR_RETURN(bool half, fits(middle));
    (half ? low : high) = middle;
  }
  return low;
}

StatusOr<int64_t>
LeastRegions::largestMicroBatch(const ExecutableGraph &graph,
                                const std::vector<int64_t> &room,
                                int64_t most) {
  return mostFitting(
      0, most, [&](int64_t tokens) { return fit(graph, room, tokens, 0); });
}

StatusOr<int64_t> LeastRegions::longestSample(const ExecutableGraph &graph,
                                              const std::vector<int64_t> &room,
                                              int64_t microBatch,
                                              int64_t most) {
  return mostFitting(microBatch, most, [&](int64_t tokens) {
    return fit(graph, room, microBatch, tokens);
  });
}

StatusOr<bool> LeastRegions::hold(const ExecutableGraph &graph,
                                  const std::vector<int64_t> &room,
                                  int64_t microBatch, int64_t tokens) {
  DYNA_ASSIGN_OR_RETURN(bool fits,
                        fit(graph, room, std::min(microBatch, tokens), tokens));
  if (fits || tokens <= 1)
    return fits;
  // Smaller micro-batches may fit, which have room for fewer samples.
  DYNA_ASSIGN_OR_RETURN(bool alone, fit(graph, room, 1, tokens));
  if (!alone)
    return false;
  DYNA_ASSIGN_OR_RETURN(int64_t largest,
                        largestMicroBatch(graph, room, microBatch));
  return largest > 0 ? fit(graph, room, largest, tokens) : false;
}

/// Returns the bytes that arenas have beside the persistent tensors.
static std::vector<int64_t>
roomBeside(const Planner &planner, Persistent persistent, int64_t rankBytes) {
  const ExecutableGraph &graph = planner.graph();
  std::vector<int64_t> room;
  for (int rank = 0; rank < graph.ranks(); ++rank)
    room.push_back(rankBytes - persistentBytes(graph.rankView(rank),
                                               planner.costs().layerStates(),
                                               persistent));
  return room;
}

StatusOr<int64_t> longestSampleWithin(const Planner &planner,
                                      const PlanOptions &options,
                                      Persistent persistent,
                                      int64_t rankBytes) {
  const ExecutableGraph &graph = planner.graph();
  LeastRegions least(planner, options,
                     includes(persistent, Persistent::Gradients));
  return least.longestSample(graph, roomBeside(planner, persistent, rankBytes),
                             options.maxTokensPerMicroBatch,
                             options.mostTokens());
}

StatusOr<int64_t> largestMicroBatchWithin(const Planner &planner,
                                          const PlanOptions &options,
                                          Persistent persistent,
                                          int64_t rankBytes) {
  const ExecutableGraph &graph = planner.graph();
  LeastRegions least(planner, options,
                     includes(persistent, Persistent::Gradients));
  return least.largestMicroBatch(graph,
                                 roomBeside(planner, persistent, rankBytes),
                                 options.maxTokensPerMicroBatch);
}

StatusOr<std::optional<Policy>>
limitPolicy(const Planner &planner, PlanRequest request,
            const PlanOptions &options, Persistent persistent,
            int64_t rankBytes, int64_t beside, const std::string &flag) {
  if (request.tokensPerMicroBatch != 0)
    return std::optional<Policy>();
  // If the largest micro-batch is too small for these slices, so are all
  // smaller ones.
  if (options.slices.any())
    DYNA_RETURN_IF_ERROR(options.slices.check(options.maxTokensPerMicroBatch,
                                              options.mostTokens()));
  // Round as regions are sized (StepRegions.h).
  rankBytes -= rankBytes % plan::placeAlignment;
  DYNA_ASSIGN_OR_RETURN(request.tokensPerMicroBatch,
                        largestMicroBatchWithin(planner, options, persistent,
                                                rankBytes - beside));
  const int64_t most = options.maxTokensPerMicroBatch;
  if (request.tokensPerMicroBatch == 0 || request.tokensPerMicroBatch == most)
    return std::optional<Policy>();
  request.strategy = planner.graph().strategy();
  request.isAgain = true;
  DYNA_ASSIGN_OR_RETURN(Policy policy,
                        choosePolicy(planner.costs(), std::move(request)));
  const PlanOptions &limited = policy.options;
  if (Status fits = limited.slices.check(limited.maxTokensPerMicroBatch,
                                         limited.mostTokens());
      limited.slices.any() && !fits.isOk())
    return Status::invalidArgument(formatText(
        "%s; larger ones than %d tokens do not fit %s of a rank (%s)",
        fits.message(), limited.maxTokensPerMicroBatch, formatBytes(rankBytes),
        flag));
  policy.notes.push_back(formatText(
      "micro-batches have at most %d tokens, not %d: larger ones do not fit %s "
      "of a rank (%s)",
      policy.options.maxTokensPerMicroBatch, most, formatBytes(rankBytes),
      flag));
  return std::optional<Policy>(std::move(policy));
}

} // namespace dyna
