//===- ReplaceGraphs.cpp - Replaces the graphs of a run -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/ReplaceGraphs.h"

#include "runtime/base/Text.h"
#include "runtime/plan/graph/StateTensors.h"
#include "runtime/planner/step/StepRegions.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/train/open/ChooseGraphs.h"
#include "runtime/train/open/OpenSession.h"

#include <algorithm>
#include <chrono>

namespace dyna {
namespace {

double secondsSince(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// Longest sample of the data that the run has open.
int64_t longestSampleOf(const Session &session) {
  int64_t longest = 0;
  for (const SampleIndexPointer &index : {session.data, session.heldOut})
    if (index)
      longest = std::max(longest, index->statistics().longestSample());
  return longest;
}

/// Graphs and the regions of their plans.
struct SizedGraphs {
  Session chosen; ///< options, notes and graphs alone
  StepRegions regions;
};

/// Returns the options of the run under the next strategy.
TrainOptions optionsOf(const Session &session, const NextStrategy &next) {
  TrainOptions options = session.options;
  options.strategy = next.strategy;
  options.ranges = next.ranges;
  options.ranks = 0; // those of the strategy
  if (next.ranges.empty()) {
    options.mergeRanges = "auto";
    options.given.erase("merge-ranges");
  }
  return options;
}

Status checkRanks(const Session &session, const StepGraphs &graphs) {
  const ExecutableGraph &home = *graphs.home().graph;
  if (home.ranks() > session.ranks->worldRanks())
    return Status::invalidArgument(
        formatText("strategy '%s' has %d ranks, but this run has %d",
                   home.name(), home.ranks(), session.ranks->worldRanks()));
  return Status::ok();
}

/// Chooses graphs and sizes their regions, in arenas of `rankBytes` (-1: no limit).
StatusOr<SizedGraphs> sizeGraphs(const Session &session,
                                 const TrainOptions &options,
                                 int64_t rankBytes) {
  SizedGraphs sized;
  Session &chosen = sized.chosen;
  chosen.options = options;
  chosen.model = session.model;
  if (rankBytes >= 0)
    chosen.options.rankMemory = std::to_string(rankBytes);
  DYNA_RETURN_IF_ERROR(chooseGraphs(chosen, /*training=*/true));
  chosen.options.rankMemory = options.rankMemory;
  DYNA_RETURN_IF_ERROR(checkRanks(session, *chosen.graphs));
  const int64_t longest = longestSampleOf(session);
  DYNA_ASSIGN_OR_RETURN(const int64_t most,
                        longestSampleOf(*chosen.graphs,
                                        chosen.graphs->ofLongest(),
                                        /*training=*/true, rankBytes));
  if (longest > most)
    return Status::resourceExhausted(
        formatText("samples of this run have up to %d tokens, but strategy "
                   "'%s' takes %d",
                   longest, chosen.graphs->ofLongest().graph->name(), most));
  DYNA_RETURN_IF_ERROR(setLongestSample(*chosen.graphs, longest));
  DYNA_ASSIGN_OR_RETURN(sized.regions,
                        sizeStepRegions(*chosen.graphs, options.tokensPerBatch,
                                        /*training=*/true, rankBytes,
                                        /*atLeast=*/false));
  return sized;
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
    if (fits(session, sized))
      return sized;
  }
  // A page more than the tensors have may be lost at each end.
  const int64_t arena =
      *std::min_element(session.arenas.begin(), session.arenas.end());
  const int64_t rankBytes = std::max<int64_t>(regionBytesBeside(arena, 1), 0);
  return sizeGraphs(session, options, rankBytes);
}

StatusOr<GraphSwitch> planState(const Session &session,
                                const StepGraphs &graphs,
                                ReplacementCost &cost) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<SwitchTensor> tensors =
      stateTensors(*session.home().graph, *graphs.home().graph);
  const int ranks = session.ranks->worldRanks();
  DYNA_ASSIGN_OR_RETURN(
      SwitchPlan plan,
      planSwitch(tensors,
                 networkOf(graphs.home().planner->costs().cluster(), ranks)));
  DYNA_ASSIGN_OR_RETURN(GraphSwitch state,
                        GraphSwitch::create(std::move(tensors), std::move(plan),
                                            ranks,
                                            session.model->parameters()));
  cost.planSeconds = secondsSince(begin);
  cost.sentBytes = state.sentBytes();
  cost.missingBytes = missingBytes(state.tensors);
  return state;
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
                        fitGraphs(session, optionsOf(session, next)));
  PlannedReplacement planned;
  sized.regions.apply(*sized.chosen.graphs);
  planned.options = std::move(sized.chosen.options);
  planned.graphs = std::move(sized.chosen.graphs);
  planned.notes = std::move(sized.chosen.notes);
  planned.planner = std::make_unique<StepPlanner>(
      *planned.graphs, planned.options.mergeRanges == "auto",
      sized.regions.bytes);
  DYNA_ASSIGN_OR_RETURN(planned.state,
                        planState(session, *planned.graphs, planned.cost));
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
