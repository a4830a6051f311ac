//===- NextGraphs.cpp - Makes graphs that a run can go over to ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/NextGraphs.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/StateTensors.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "runtime/train/open/ChooseGraphs.h"

#include <algorithm>
#include <chrono>

namespace dyna {

/// Returns longest sample of the data that the run has open.
static int64_t longestSampleOf(const Session &session) {
  int64_t longest = 0;
  for (const SampleIndexPointer &index : {session.data, session.heldOut})
    if (index)
      longest = std::max(longest, index->statistics().longestSample());
  return longest;
}

TrainOptions optionsOf(const TrainOptions &now, const NextStrategy &next) {
  TrainOptions options = now;
  options.strategy = next.strategy;
  options.ranges = next.ranges;
  options.ranks = 0; // the strategy gives the number
  if (next.ranges.empty()) {
    options.mergeRanges = "auto";
    options.given.erase("merge-ranges");
  }
  return options;
}

NextStrategy presentStrategy(const TrainOptions &options,
                             const StepGraphs &graphs) {
  if (!options.ranges.empty())
    return {"", options.ranges};
  return {describeStrategy(graphs.home().graph->strategy()), ""};
}

StatusOr<SizedGraphs> sizeGraphs(const Session &session, const Model &model,
                                 const TrainOptions &options,
                                 int64_t rankBytes) {
  SizedGraphs sized;
  Session &chosen = sized.chosen;
  chosen.options = options;
  chosen.model = chosen.compiled = &model;
  if (rankBytes >= 0)
    chosen.options.rankMemory = std::to_string(rankBytes);
  DYNA_RETURN_IF_ERROR(chooseGraphs(chosen, /*training=*/true));
  chosen.options.rankMemory = options.rankMemory;
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

StatusOr<GraphSwitch> planState(const StepGraphs &from, const StepGraphs &to,
                                int ranks, ReplacementCost &cost) {
  const auto begin = std::chrono::steady_clock::now();
  std::vector<SwitchTensor> tensors =
      stateTensors(*from.home().graph, *to.home().graph);
  DYNA_ASSIGN_OR_RETURN(
      SwitchPlan plan,
      planSwitch(tensors,
                 networkOf(to.home().planner->costs().cluster(), ranks)));
  DYNA_ASSIGN_OR_RETURN(
      GraphSwitch state,
      GraphSwitch::create(std::move(tensors), std::move(plan), ranks,
                          to.home().graph->model().parameters()));
  cost.planSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
  cost.sentBytes = state.sentBytes();
  cost.missingBytes = missingBytes(state.tensors);
  return state;
}

} // namespace dyna
