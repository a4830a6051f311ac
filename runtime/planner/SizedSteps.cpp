//===- SizedSteps.cpp - Steps of given strategies, ready to plan ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/SizedSteps.h"

#include "runtime/base/Text.h"
#include "runtime/planner/StepRegions.h"
#include "runtime/planner/StepReport.h"

#include <algorithm>
#include <numeric>

namespace dyna {

static void addNotes(std::vector<std::string> &notes,
                     const std::vector<std::string> &more,
                     const std::string &strategy) {
  for (const std::string &note : more)
    notes.push_back(formatText("strategy '%s': %s", strategy, note));
}

StatusOr<std::unique_ptr<SizedSteps>>
SizedSteps::create(const CostModel &costs, Asked asked,
                   std::vector<std::string> &notes) {
  auto made = std::make_unique<SizedSteps>();
  for (const LengthRange &range : asked.ranges.ranges()) {
    asked.request.strategy = asked.strategies[range.strategy];
    std::vector<std::string> own;
    DYNA_ASSIGN_OR_RETURN(PlannedGraph graph,
                          planGraph(costs, asked.request, own));
    addNotes(notes, own, range.name);
    made->graphs_.push_back(std::move(graph));
  }
  std::vector<PlannedGraph *> all;
  for (PlannedGraph &graph : made->graphs_)
    all.push_back(&graph);
  DYNA_ASSIGN_OR_RETURN(
      Orchestration orchestration,
      orchestrateRanges(asked.ranges, {all.begin(), all.end()}));
  const StepGraphs graphs(all, orchestration.home(), &orchestration);
  const int64_t rankBytes = asked.memoryBytes > 0 ? asked.memoryBytes : -1;
  for (PlannedGraph *graph : all)
    if (rankBytes > 0) {
      std::vector<std::string> own;
      asked.request.strategy = graph->graph->strategy();
      DYNA_RETURN_IF_ERROR(limitMicroBatches(graphs, *graph, asked.request,
                                             /*training=*/true, rankBytes,
                                             own));
      addNotes(notes, own, graph->name);
    }
  DYNA_RETURN_IF_ERROR(setLongestSample(graphs, asked.ranges, asked.longest));
  DYNA_ASSIGN_OR_RETURN(StepRegions regions,
                        sizeStepRegions(graphs, asked.request.tokensPerBatch,
                                        /*training=*/true, rankBytes,
                                        /*atLeast=*/true));
  regions.apply(graphs);
  for (size_t rank = 0; rankBytes > 0 && rank < regions.bytes.size(); ++rank)
    made->lackingBytes_ = std::max(
        made->lackingBytes_,
        graphs.homeBytes(static_cast<int>(rank), true) + regions.bytes[rank] -
            (rankBytes - rankBytes % plan::placeAlignment));
  made->planner_ = std::make_unique<StepPlanner>(
      std::vector<const PlannedGraph *>(all.begin(), all.end()),
      std::move(asked.ranges), std::move(orchestration), asked.merges,
      std::move(regions.bytes));
  return made;
}

StatusOr<double>
SizedSteps::play(const std::vector<std::vector<int64_t>> &steps) const {
  double seconds = 0;
  for (const std::vector<int64_t> &lengths : steps) {
    DYNA_ASSIGN_OR_RETURN(
        VerifiedStep step,
        planner_->plan(
            lengths,
            std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)),
            /*trains=*/true, /*update=*/true));
    DYNA_ASSIGN_OR_RETURN(auto phases, playPhases(*planner_, step, {}));
    seconds += reportStep(*planner_, step, phases).seconds;
  }
  return seconds / static_cast<double>(std::max<size_t>(steps.size(), 1));
}

} // namespace dyna
