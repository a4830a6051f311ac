//===- RankMemory.cpp - How large the dynamic regions are -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/RankMemory.h"

#include "runtime/base/Text.h"

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
    const int64_t held =
        persistentLayout(graph.rankView(rank), persistent).bytes;
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

/// The most tokens from `low`, which is not looked at, to `high` with which the
/// sequential form fits. `set` writes them to options.
template <typename Set>
static StatusOr<int64_t> mostWithin(const Planner &planner,
                                    const PlanOptions &options,
                                    Persistent persistent, int64_t rankBytes,
                                    int64_t low, int64_t high, Set set) {
  const ExecutableGraph &graph = planner.graph();
  std::vector<int64_t> room;
  for (int rank = 0; rank < graph.ranks(); ++rank)
    room.push_back(rankBytes -
                   persistentLayout(graph.rankView(rank), persistent).bytes);
  PlanOptions other = options;
  auto fits = [&](int64_t tokens) -> StatusOr<bool> {
    set(other, tokens);
    DYNA_ASSIGN_OR_RETURN(
        auto least, planner.leastDynamicBytes(
                        other, includes(persistent, Persistent::Gradients)));
    for (int rank = 0; rank < graph.ranks(); ++rank)
      if (least[rank] > room[rank])
        return false;
    return true;
  };
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

StatusOr<int64_t> longestSampleWithin(const Planner &planner,
                                      const PlanOptions &options,
                                      Persistent persistent,
                                      int64_t rankBytes) {
  return mostWithin(
      planner, options, persistent, rankBytes, options.maxTokensPerMicroBatch,
      options.mostTokens(),
      [](PlanOptions &other, int64_t tokens) { other.longestSample = tokens; });
}

StatusOr<int64_t> largestMicroBatchWithin(const Planner &planner,
                                          const PlanOptions &options,
                                          Persistent persistent,
                                          int64_t rankBytes) {
  return mostWithin(planner, options, persistent, rankBytes, 0,
                    options.maxTokensPerMicroBatch,
                    [](PlanOptions &other, int64_t tokens) {
                      other.maxTokensPerMicroBatch = tokens;
                      other.longestSample = 0;
                    });
}

} // namespace dyna
