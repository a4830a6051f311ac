//===- StrategyTimes.cpp - Estimates phases of strategies -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/search/StrategyCandidates.h"

#include <algorithm>
#include <limits>
#include <set>

namespace dyna {

constexpr double never = std::numeric_limits<double>::infinity();

/// Returns the bytes beside the values held by micro-batches. They are those of
/// the layer with the largest need, while it runs backward on a micro-batch of
/// `tokens`.
static int64_t workingBytes(const ExecutableGraph &graph,
                            const PlanOptions &options, int64_t tokens) {
  const Load load = loadOfSample(tokens);
  int64_t most = 0;
  std::set<int> known;
  for (int stage = 0; stage < graph.stages(); ++stage) {
    const RankView &view = graph.replicaView(graph.rankAt({0, stage, 0}));
    for (int l = view.firstLayer(); l < view.endLayer(); ++l) {
      if (!known.insert(view.layer(l).kind()).second)
        continue;
      int64_t workspace = 0;
      for (int role = 0; role < DYNA_ROLE_COUNT; ++role)
        if (view.hasRole(l, role))
          workspace = std::max(workspace, view.workspaceBytes(l, role, load));
      if (!view.hasBackward(l))
        workspace += view.keptBytes(l, plan::RECOMPUTE_NONE, load);
      most = std::max(
          most,
          workspace + 2 * view.gradientBytes(l, load) +
              view.lateBytes(l, nearestMode(view.kind(l), options.recompute[0]),
                             splitsBackward(view.kind(l)), load));
    }
  }
  return most;
}

bool StrategyCandidates::hasRoomFor(const Entry &entry,
                                    const std::vector<int64_t> &limits,
                                    int64_t tokens, int inFlight) const {
  PlanOptions options = entry.options;
  options.dynamicLimits = limits;
  const HeldBytes held(entry.placed->graph, options);
  return held.of(loadOfSample(tokens)) * inFlight +
             workingBytes(entry.placed->graph, options, tokens) <=
         held.limit();
}

int64_t StrategyCandidates::tokensInFlight(const Entry &entry,
                                           const std::vector<int64_t> &limits,
                                           int inFlight) const {
  const int64_t all = std::max(entry.options.longestSample, kUsualMicroBatch);
  if (space_.memoryBytes == 0 || hasRoomFor(entry, limits, all, inFlight))
    return all;
  int64_t low = 0, high = all;
  while (high - low > std::max<int64_t>(1, low / 64)) {
    const int64_t middle = low + (high - low) / 2;
    (hasRoomFor(entry, limits, middle, inFlight) ? low : high) = middle;
  }
  return low;
}

double StrategyCandidates::phaseSeconds(int candidate,
                                        const std::vector<int> &graphs,
                                        const PhaseLengths &lengths,
                                        int64_t longest) const {
  if (!holds(candidate, graphs, longest))
    return never;
  const Entry &entry = entries_[candidate];
  return phaseSeconds(entry, lengths, longest, [&](int inFlight) {
    std::vector<int> key = graphs;
    std::sort(key.begin() + 1, key.end());
    key.push_back(candidate);
    key.push_back(inFlight);
    auto [found, isNew] = inFlight_.try_emplace(std::move(key), 0);
    if (isNew)
      found->second =
          tokensInFlight(entry, roomOf(candidate, graphs), inFlight);
    return found->second;
  });
}

double StrategyCandidates::phaseSeconds(
    const Entry &entry, const PhaseLengths &lengths, int64_t longest,
    const std::function<int64_t(int)> &tokensOf) const {
  const int64_t wanted = std::max(longest, kUsualMicroBatch);
  // Tries as many micro-batches of several samples in flight as there are
  // stages, and fewer larger ones. A longer sample has as many in flight as
  // fit.
  RoomInFlight room;
  double best = never;
  for (int inFlight = entry.placed->graph.stages(); inFlight > 0;
       inFlight /= 2) {
    room.emplace_back(inFlight, std::min(wanted, tokensOf(inFlight)));
    if (room.back().second >= longest)
      break;
  }
  for (size_t i = 0; i < room.size(); ++i) {
    const int64_t tokens = room[i].second;
    best = std::min(
        best, entry.estimate->seconds(
                  lengths,
                  std::max(tokens, std::min(longest, entry.needs->microBatch)),
                  meanInFlight(room, i, lengths),
                  room[0].second * entry.placed->graph.stages()));
  }
  return best;
}

double StrategyCandidates::meanInFlight(const RoomInFlight &room, size_t first,
                                        const PhaseLengths &lengths) {
  double all = 0, parts = 0;
  for (int c = 0; c < PhaseLengths::kClasses; ++c) {
    if (lengths.tokensOf[c] == 0)
      continue;
    const int64_t longest = std::min((INT64_C(2) << c) - 1, lengths.longest);
    size_t at = first;
    while (at + 1 < room.size() && room[at].second < longest)
      ++at;
    const auto tokens = static_cast<double>(lengths.tokensOf[c]);
    all += tokens;
    parts += tokens / room[at].first;
  }
  return parts > 0 ? all / parts : room[first].first;
}

double StrategyCandidates::switchSeconds(SwitchKind kind, int from,
                                         int to) const {
  auto [found, isNew] =
      switches_.try_emplace({static_cast<int>(kind), from, to}, 0);
  if (!isNew)
    return found->second;
  if (from != to)
    found->second =
        switching_.seconds(kind, *entries_[from].layout, *entries_[to].layout);
  else if (kind == SwitchKind::First)
    found->second = entries_[from].estimate->gatherSeconds();
  return found->second;
}

} // namespace dyna
