//===- ReplaceGraphs.cpp - Replaces the graphs of a run -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/ReplaceGraphs.h"

#include "runtime/base/text/Text.h"
#include "runtime/device/host/HostMemory.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/train/open/OpenSession.h"
#include "runtime/transport/ProcessTransport.h"

#include <algorithm>
#include <chrono>

namespace dyna {
namespace {

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

Status checkRanks(const Session &session, const StepGraphs &graphs) {
  const ExecutableGraph &home = *graphs.home().graph;
  if (home.ranks() > session.ranks->worldRanks())
    return Status::invalidArgument(
        formatText("strategy '%s' has %d ranks, but this run has %d",
                   home.name(), home.ranks(), session.ranks->worldRanks()));
  return Status::ok();
}

/// Returns true if each rank has its region beside home's tensors.
bool fits(const Session &session, const SizedGraphs &sized) {
  for (size_t rank = 0; rank < sized.regions.bytes.size(); ++rank)
    if (sized.regions.bytes[rank] >
        regionBytesBeside(session.arenas[rank],
                          sized.chosen.graphs->homeBytes(static_cast<int>(rank),
                                                         /*training=*/true)))
      return false;
  return true;
}

/// Sizes graphs: with regions as large as plans can use if the arenas hold
/// them, else as large as the smallest arena allows.
StatusOr<SizedGraphs> fitGraphs(const Session &session, const Model &model,
                                const TrainOptions &options) {
  if (options.rankMemory.empty()) {
    DYNA_ASSIGN_OR_RETURN(SizedGraphs sized,
                          sizeGraphs(session, model, options, -1));
    DYNA_RETURN_IF_ERROR(checkRanks(session, *sized.chosen.graphs));
    if (fits(session, sized))
      return sized;
  }
  // Rounding to pages may lose a page at each end.
  const int64_t arena =
      *std::min_element(session.arenas.begin(), session.arenas.end());
  const int64_t rankBytes = std::max<int64_t>(regionBytesBeside(arena, 1), 0);
  DYNA_ASSIGN_OR_RETURN(SizedGraphs sized,
                        sizeGraphs(session, model, options, rankBytes));
  DYNA_RETURN_IF_ERROR(checkRanks(session, *sized.chosen.graphs));
  return sized;
}

/// Bytes that arenas of this process need beside those that are used now.
int64_t growthOf(const Session &session, const PlannedReplacement &next) {
  int64_t growth = 0;
  const RankTeam &team = *session.ranks;
  for (size_t local = 0; local < team.localRanks(); ++local) {
    const Executor &executor = team.executor(local);
    const int rank = executor.machine().rank();
    const int64_t tensors = rank < next.graphs->home().graph->ranks()
                                ? next.graphs->homeBytes(rank, true)
                                : 0;
    const int64_t region = rank < static_cast<int>(next.regionBytes.size())
                               ? next.regionBytes[static_cast<size_t>(rank)]
                               : 0;
    const int64_t need = std::max(
        bytesToReplace(executor.persistentBytes(), tensors,
                       next.state.sides[static_cast<size_t>(rank)].passedBytes),
        tensors + region);
    growth += std::max<int64_t>(need - executor.residentBytes(), 0);
  }
  return growth;
}

} // namespace

Replacement PlannedReplacement::forRanks(const Session &session) const {
  Replacement to;
  to.graphs = graphUses(*graphs, /*training=*/true);
  to.state = &state;
  to.regionBytes = regionBytes;
  to.step = step;
  to.bytesUnderWay = SwitchOptions().bytesUnderWay;
  to.version = session.version + 1;
  return to;
}

StatusOr<PlannedReplacement> planReplacement(const Session &session,
                                             const NextStrategy &next) {
  if (!session.options.plans.empty())
    return Status::invalidArgument(
        "--plans has plans for the graphs that there are: leave it out");
  const Model &model = next.model ? *next.model : *session.model;
  DYNA_ASSIGN_OR_RETURN(
      SizedGraphs sized,
      fitGraphs(session, model, optionsOf(session.options, next)));
  PlannedReplacement planned;
  planned.model = next.model;
  sized.regions.apply(*sized.chosen.graphs);
  planned.options = std::move(sized.chosen.options);
  // A resumed run begins with no layer frozen, and would cut other stages.
  if (next.ranges.empty() && &model != session.compiled)
    planned.options.strategy =
        describeStrategy(sized.chosen.home().graph->strategy());
  planned.graphs = std::move(sized.chosen.graphs);
  planned.notes = std::move(sized.chosen.notes);
  planned.regionBytes = sized.regions.bytes;
  planned.planner = std::make_unique<StepPlanner>(
      *planned.graphs, planned.options.mergeRanges == "auto",
      sized.regions.bytes);
  DYNA_ASSIGN_OR_RETURN(planned.state,
                        planState(*session.graphs, *planned.graphs,
                                  session.ranks->worldRanks(), planned.cost));
  DYNA_RETURN_IF_ERROR(
      session.ranks->checkReplacement(planned.forRanks(session)));
  return planned;
}

Status checkGrowth(const Session &session, const PlannedReplacement &next) {
  const int64_t growth = growthOf(session, next);
  int64_t room = availableMemory();
  if (room >= 0 && launchedProcesses() > 1)
    room /= launchedProcessesHere();
  std::string of = "this machine has";
  if (!session.options.memoryLimit.empty()) {
    DYNA_ASSIGN_OR_RETURN(const int64_t limit,
                          parseBytes(session.options.memoryLimit));
    const int64_t left = std::max<int64_t>(limit - session.peakBytes(), 0);
    if (room < 0 || left < room)
      of = "--memory-limit leaves";
    room = room < 0 ? left : std::min(room, left);
  }
  if (room < 0 || growth <= room)
    return Status::ok();
  return Status::resourceExhausted(
      formatText("the move to '%s' takes %s more for a while, but %s %s",
                 next.graphs->home().graph->name(), formatBytes(growth), of,
                 formatBytes(room)));
}

Status replaceGraphs(Session &session, PlannedReplacement &next) {
  const auto begin = std::chrono::steady_clock::now();
  DYNA_RETURN_IF_ERROR(session.ranks->replace(next.forRanks(session)));
  next.cost.carrySeconds = secondsSince(begin);
  // No rank refers to the old graphs any more. Replace their planner first,
  // which still does.
  session.planner = std::move(next.planner);
  session.graphs = std::move(next.graphs);
  if (next.model) {
    session.stageModel = std::move(next.model);
    session.model = session.stageModel.get();
  }
  session.options = next.options;
  ++session.version;
  return Status::ok();
}

} // namespace dyna
