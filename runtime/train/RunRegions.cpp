//===- RunRegions.cpp - The regions of a run's ranks ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/RunRegions.h"

#include "runtime/base/Text.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/planner/PlacePhases.h"
#include "runtime/planner/RankMemory.h"
#include "runtime/train/ChooseGraphs.h"

#include <algorithm>

namespace dyna {
namespace {

/// What the plans of a graph can be.
PlanOptions widestOptions(const Session &session, const RunGraph &graph) {
  PlanOptions options = graph.options;
  options.switched = &graph != &session.home;
  // Of more micro-batches in flight than fill a mini-batch, none can be full.
  options.inFlight = static_cast<int>(
      std::min<int64_t>(options.inFlight, graph.microBatches + 1));
  options.tokensPerStep = session.options.tokensPerBatch;
  return options;
}

/// Of a rank's arena: with so many the run is not refused.
StatusOr<int64_t> enoughBytes(Session &session, bool training) {
  std::vector<std::vector<int64_t>> least;
  int64_t most = 0;
  for (RunGraph *graph : session.graphs()) {
    DYNA_ASSIGN_OR_RETURN(auto own,
                          graph->planner->leastDynamicBytes(
                              widestOptions(session, *graph), training));
    for (size_t rank = 0; rank < own.size(); ++rank)
      most = std::max(
          most,
          heldBeside(session, *graph, training) + own[rank] +
              persistentLayout(graph->graph->rankView(static_cast<int>(rank)),
                               persistentOf(session, *graph, training))
                  .bytes);
    least.push_back(std::move(own));
  }
  const Orchestration &made = *session.orchestration;
  const RegionNeed need =
      needOfRegions(made.switches, made.order, least, training);
  for (size_t rank = 0; rank < need.least.size(); ++rank)
    most = std::max(most, homeBytes(session, static_cast<int>(rank), training) +
                              need.least[rank]);
  return most;
}

std::string nameOf(Session &session, int number) {
  return session.graphs()[number]->name;
}

/// Of several graphs, one whose phase does not fit by itself.
Status refusePhase(Session &session, const RunGraph &graph, bool training,
                   int64_t rankBytes, const Status &status) {
  DYNA_ASSIGN_OR_RETURN(int64_t enough, enoughBytes(session, training));
  const std::string beside =
      &graph == &session.home
          ? ""
          : formatText(", beside %s of '%s', which is home",
                       formatBytes(heldBeside(session, graph, training)),
                       session.home.name);
  return Status::resourceExhausted(
      formatText("--rank-memory %d: strategy '%s'%s: %s; --rank-memory %d is "
                 "enough, and smaller --tokens-per-micro-batch helps",
                 rankBytes, graph.name, beside, status.message(), enough));
}

/// Each graph's phase fits by itself, but not beside the one before it, or not
/// what its switches pass on.
Status refuseNeighbours(Session &session, int rank, bool training,
                        int64_t rankBytes, int64_t need) {
  DYNA_ASSIGN_OR_RETURN(int64_t enough, enoughBytes(session, training));
  const Orchestration &made = *session.orchestration;
  const Neighbours pair =
      largestNeighbours(made.switches, made.order, rank, training);
  const int64_t home = homeBytes(session, rank, training);
  const std::string needed = formatText(
      "a rank may take %s, but rank %d needs %s at least: %s for parameters "
      "and their state of '%s', which is home, and %s",
      formatBytes(rankBytes), rank, formatBytes(home + need), formatBytes(home),
      session.home.name, formatBytes(need));
  if (pair.bytes < need)
    return Status::resourceExhausted(
        formatText("%s while what another strategy has goes home: "
                   "--rank-memory %d is enough",
                   needed, enough));
  return Status::resourceExhausted(formatText(
      "%s while the parameters of '%s' come and those of '%s' are still there, "
      "for which %s are left; each of the two fits alone: --rank-memory %d is "
      "enough",
      needed, nameOf(session, pair.behind), nameOf(session, pair.before),
      formatBytes(std::max<int64_t>(rankBytes - home, 0)), enough));
}

} // namespace

void RunRegions::apply(Session &session) const {
  const std::vector<RunGraph *> graphs = session.graphs();
  for (size_t number = 0; number < graphs.size(); ++number)
    graphs[number]->options.dynamicLimits = limits[number];
}

StatusOr<RunRegions> sizeRunRegions(Session &session, bool training,
                                    int64_t rankBytes, bool atLeast) {
  const int64_t given = rankBytes;
  // Everything in an arena is of whole blocks: less than one is of no use.
  if (rankBytes > 0)
    rankBytes -= rankBytes % plan::placeAlignment;
  RunRegions regions;
  std::vector<std::vector<int64_t>> most;
  for (RunGraph *graph : session.graphs()) {
    const int64_t beside = heldBeside(session, *graph, training);
    auto sized = sizeDynamicRegions(
        *graph->planner, widestOptions(session, *graph),
        persistentOf(session, *graph, training),
        rankBytes < 0 ? rankBytes : std::max<int64_t>(rankBytes - beside, 0),
        atLeast);
    if (sized.status().code() == StatusCode::ResourceExhausted) {
      if (!session.others.empty())
        return refusePhase(session, *graph, training, given, sized.status());
      return Status::resourceExhausted(
          sized.status().message() +
          "; larger --rank-memory or smaller --tokens-per-micro-batch helps");
    }
    DYNA_RETURN_IF_ERROR(sized.status());
    regions.isLimited |= sized->areLimited();
    regions.limits.push_back(sized->bytes);
    most.push_back(sized->most);
  }
  if (session.others.empty()) {
    regions.bytes = regions.limits.front();
    regions.most = most.front();
    return regions;
  }
  const Orchestration &made = *session.orchestration;
  regions.most = needOfRegions(made.switches, made.order, most, training).most;
  regions.bytes = regions.most;
  if (rankBytes < 0)
    return regions;
  const RegionNeed need =
      needOfRegions(made.switches, made.order, regions.limits, training);
  for (int rank = 0; rank < static_cast<int>(regions.bytes.size()); ++rank) {
    const int64_t room = rankBytes - homeBytes(session, rank, training);
    if (need.least[rank] > room && !atLeast)
      return refuseNeighbours(session, rank, training, rankBytes,
                              need.least[rank]);
    regions.bytes[rank] =
        std::min(regions.most[rank], std::max(room, need.least[rank]));
  }
  return regions;
}

} // namespace dyna
