//===- StepGraphs.cpp - Holds the graphs that share a step ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/StepGraphs.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/StateBytes.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/graph/RankMemory.h"
#include "runtime/planner/place/PlacePhases.h"

#include <algorithm>

namespace dyna {

StatusOr<PlannedGraph> planGraph(const CostModel &costs,
                                 const PlanRequest &request,
                                 std::vector<std::string> &notes) {
  PlannedGraph made;
  made.name = request.strategy.name;
  DYNA_ASSIGN_OR_RETURN(auto policy, choosePolicy(costs, request));
  DYNA_ASSIGN_OR_RETURN(
      ExecutableGraph graph,
      ExecutableGraph::create(costs.model(), policy.strategy));
  made.graph = std::make_unique<ExecutableGraph>(std::move(graph));
  made.planner = std::make_unique<Planner>(*made.graph, costs);
  made.options = policy.options;
  made.microBatches = policy.microBatches;
  made.isSizeOpen = request.tokensPerMicroBatch == 0;
  notes.insert(notes.end(), policy.notes.begin(), policy.notes.end());
  return made;
}

Status checkEqualRanks(const LengthRanges &ranges,
                       const std::vector<Strategy> &strategies) {
  const Strategy &first = strategies[ranges.ranges().front().strategy];
  for (const LengthRange &range : ranges.ranges())
    if (const Strategy &own = strategies[range.strategy];
        own.ranks() != first.ranks())
      return Status::invalidArgument(formatText(
          "strategy '%s' has %d ranks, but strategy '%s' has %d: --ranges "
          "needs strategies of as many ranks",
          describeStrategy(own), own.ranks(), describeStrategy(first),
          first.ranks()));
  return Status::ok();
}

StatusOr<std::unique_ptr<StepGraphs>>
StepGraphs::create(LengthRanges ranges, std::vector<PlannedGraph> graphs) {
  std::vector<const ExecutableGraph *> executable;
  for (const PlannedGraph &own : graphs)
    executable.push_back(own.graph.get());
  OrchestrateOptions wanted;
  wanted.home = ranges.home();
  DYNA_ASSIGN_OR_RETURN(
      Orchestration made,
      orchestrate(
          executable,
          switchMaker(networkOf(graphs.front().planner->costs().cluster(),
                                executable.front()->ranks())),
          wanted));
  return std::unique_ptr<StepGraphs>(
      new StepGraphs(std::move(ranges), std::move(graphs), std::move(made)));
}

Persistent StepGraphs::persistentOf(const PlannedGraph &graph,
                                    bool training) const {
  if (isHome(graph))
    return training ? Persistent::Training : Persistent::Masters;
  return training ? Persistent::Gradients : Persistent::Values;
}

PlanOptions StepGraphs::optionsOf(const PlannedGraph &graph) const {
  PlanOptions options = graph.options;
  options.switched = !isHome(graph);
  return options;
}

int64_t StepGraphs::bytesOf(const PlannedGraph &graph, int rank,
                            bool training) const {
  return persistentBytes(graph.graph->rankView(rank),
                         graph.planner->costs().layerStates(),
                         persistentOf(graph, training));
}

int64_t StepGraphs::homeBytes(int rank, bool training) const {
  return bytesOf(home(), rank, training);
}

int64_t StepGraphs::heldBytes(int rank, bool training) const {
  const std::vector<int> &order = orchestration_.order;
  int64_t most = largestNeighbours(switches(), order, rank, training).bytes;
  for (int graph : order)
    most = std::max(most, dyna::heldBeside(switches(), order, graph, rank,
                                           training, /*takesTurns=*/true));
  return homeBytes(rank, training) + most;
}

int64_t StepGraphs::heldBeside(const PlannedGraph &graph, bool training) const {
  if (isHome(graph))
    return 0;
  const int number = static_cast<int>(&graph - graphs_.data());
  int64_t most = 0;
  for (int rank = 0; rank < graph.graph->ranks(); ++rank)
    most = std::max(most, homeBytes(rank, training) +
                              dyna::heldBeside(switches(), orchestration_.order,
                                               number, rank, training,
                                               /*takesTurns=*/true) -
                              bytesOf(graph, rank, training));
  return most;
}

Status limitMicroBatches(const StepGraphs &graphs, PlannedGraph &graph,
                         PlanRequest request, bool training, int64_t rankBytes,
                         std::vector<std::string> &notes) {
  DYNA_ASSIGN_OR_RETURN(
      std::optional<Policy> policy,
      limitPolicy(*graph.planner, std::move(request), graphs.optionsOf(graph),
                  graphs.persistentOf(graph, training), rankBytes,
                  graphs.heldBeside(graph, training), "--rank-memory"));
  if (!policy)
    return Status::ok();
  graph.options = policy->options;
  graph.microBatches = policy->microBatches;
  notes.insert(notes.end(), policy->notes.begin(), policy->notes.end());
  return Status::ok();
}

StatusOr<int64_t> longestSampleOf(const StepGraphs &graphs,
                                  const PlannedGraph &graph, bool training,
                                  int64_t rankBytes) {
  const PlanOptions options = graphs.optionsOf(graph);
  const int64_t most = longestSample(graph.graph->model(), options);
  if (rankBytes < 0 || most <= options.maxTokensPerMicroBatch)
    return most;
  return longestSampleWithin(*graph.planner, options,
                             graphs.persistentOf(graph, training),
                             rankBytes - graphs.heldBeside(graph, training));
}

Status setLongestSample(StepGraphs &graphs, int64_t longest) {
  DYNA_RETURN_IF_ERROR(graphs.ranges().hold(longest));
  for (int range = 0; range < graphs.count(); ++range)
    graphs.graphs()[range].options.longestSample =
        std::min(longest, graphs.ranges().ranges()[range].last);
  return Status::ok();
}

} // namespace dyna
