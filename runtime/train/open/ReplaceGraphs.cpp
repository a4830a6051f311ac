//===- ReplaceGraphs.cpp - Replaces the graphs of a run -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/ReplaceGraphs.h"

#include "runtime/base/Text.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/train/open/OpenSession.h"

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

/// With regions as large as plans can use if the arenas hold them, else as large as the
/// smallest arena allows.
StatusOr<SizedGraphs> fitGraphs(const Session &session,
                                const TrainOptions &options) {
  if (options.rankMemory.empty()) {
    DYNA_ASSIGN_OR_RETURN(SizedGraphs sized,
                          sizeGraphs(session, options, /*rankBytes=*/-1));
    DYNA_RETURN_IF_ERROR(checkRanks(session, *sized.chosen.graphs));
    if (fits(session, sized))
      return sized;
  }
  // A page more than the tensors have may be lost at each end.
  const int64_t arena =
      *std::min_element(session.arenas.begin(), session.arenas.end());
  const int64_t rankBytes = std::max<int64_t>(regionBytesBeside(arena, 1), 0);
  DYNA_ASSIGN_OR_RETURN(SizedGraphs sized,
                        sizeGraphs(session, options, rankBytes));
  DYNA_RETURN_IF_ERROR(checkRanks(session, *sized.chosen.graphs));
  return sized;
}

} // namespace

Replacement PlannedReplacement::forRanks(const Session &session) const {
  Replacement to;
  to.graphs = graphUses(*graphs, /*training=*/true);
  to.state = &state;
  to.bytesUnderWay = SwitchOptions().bytesUnderWay;
  to.version = session.version + 1;
  return to;
}

StatusOr<PlannedReplacement> planReplacement(const Session &session,
                                             const NextStrategy &next) {
  if (!session.options.plans.empty())
    return Status::invalidArgument(
        "--plans has plans for the graphs that there are: leave it out");
  DYNA_ASSIGN_OR_RETURN(SizedGraphs sized,
                        fitGraphs(session, optionsOf(session.options, next)));
  PlannedReplacement planned;
  sized.regions.apply(*sized.chosen.graphs);
  planned.options = std::move(sized.chosen.options);
  planned.graphs = std::move(sized.chosen.graphs);
  planned.notes = std::move(sized.chosen.notes);
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

Status replaceGraphs(Session &session, PlannedReplacement &next) {
  const auto begin = std::chrono::steady_clock::now();
  DYNA_RETURN_IF_ERROR(session.ranks->replace(next.forRanks(session)));
  next.cost.carrySeconds = secondsSince(begin);
  // No rank knows the graphs before any more. Their planner goes before them.
  session.planner = std::move(next.planner);
  session.graphs = std::move(next.graphs);
  session.options = next.options;
  ++session.version;
  return Status::ok();
}

} // namespace dyna
