//===- ChooseGraphs.cpp - Strategies of a run become graphs ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/ChooseGraphs.h"

#include "runtime/base/Text.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/planner/CutMiniBatch.h"
#include "runtime/planner/PlacePhases.h"
#include "runtime/planner/Policy.h"
#include "runtime/planner/RankMemory.h"
#include "runtime/train/Devices.h"
#include "runtime/train/NamedStrategies.h"
#include "runtime/transport/ProcessTransport.h"
#include "runtime/transport/threads/ThreadTransport.h"

#include <algorithm>

namespace dyna {
namespace {

PlanRequest planRequest(const TrainOptions &options, Strategy strategy) {
  PlanRequest request;
  request.strategy = std::move(strategy);
  request.pipeline = options.pipeline;
  request.microBatches = options.microBatches;
  request.recompute = options.recompute;
  request.tokensPerBatch = options.tokensPerBatch;
  request.tokensPerMicroBatch = options.tokensPerMicroBatch;
  request.inFlight = options.inFlight;
  request.splitBackward = options.splitBackward;
  return request;
}

/// Of one strategy, which is named where there are several.
void addNotes(Session &session, std::vector<std::string> notes,
              const std::string &strategy) {
  for (std::string &note : notes) {
    if (!session.options.ranges.empty())
      note = formatText("strategy '%s': %s", strategy, note);
    if (std::find(session.notes.begin(), session.notes.end(), note) ==
        session.notes.end())
      session.notes.push_back(note);
  }
}

/// Where the flag leaves it open, micro-batches are no larger than a rank may
/// take beside the other graphs; where nothing fits, its region's size says what
/// is missing.
Status limitMicroBatches(Session &session, RunGraph &graph, bool training) {
  const TrainOptions &options = session.options;
  if (options.rankMemory.empty() || options.tokensPerMicroBatch != 0)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(int64_t rankBytes, parseBytes(options.rankMemory));
  PlanRequest request = planRequest(options, graph.graph->strategy());
  DYNA_ASSIGN_OR_RETURN(request.tokensPerMicroBatch,
                        largestMicroBatchWithin(
                            *graph.planner, graph.options,
                            persistentOf(session, graph, training),
                            rankBytes - heldBeside(session, graph, training)));
  const int64_t most = graph.options.maxTokensPerMicroBatch;
  if (request.tokensPerMicroBatch == 0 || request.tokensPerMicroBatch == most)
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(
      auto policy, choosePolicy(graph.planner->costs(), std::move(request)));
  graph.options = policy.options;
  graph.microBatches = policy.microBatches;
  policy.notes.push_back(formatText(
      "micro-batches have at most %d tokens, not %d: larger ones do not fit %s "
      "of a rank (--rank-memory)",
      graph.options.maxTokensPerMicroBatch, most, formatBytes(rankBytes)));
  addNotes(session, policy.notes, graph.name);
  return Status::ok();
}

/// More ranks are refused before much is made for each of them.
Status checkRanks(const TrainOptions &options, const Strategy &strategy) {
  if (options.ranks > 0 && options.ranks != strategy.ranks())
    return Status::invalidArgument(formatText(
        "--ranks is %d, but strategy '%s' has %d: give both alike, or leave "
        "out --ranks",
        options.ranks, describeStrategy(strategy), strategy.ranks()));
  if (launchedProcesses() == 1 && strategy.ranks() > kMostThreadRanks)
    return Status::invalidArgument(formatText(
        "strategy '%s' has %d ranks, but one process has at most %d",
        describeStrategy(strategy), strategy.ranks(), kMostThreadRanks));
  return Status::ok();
}

/// And how its plans are made.
StatusOr<RunGraph> makeGraph(Session &session, Strategy strategy) {
  const TrainOptions &options = session.options;
  DYNA_RETURN_IF_ERROR(checkRanks(options, strategy));
  RunGraph made;
  made.name = strategy.name;
  DYNA_ASSIGN_OR_RETURN(auto costs,
                        CostModel::open(*session.model, options.costs));
  const PlanRequest request = planRequest(options, std::move(strategy));
  DYNA_ASSIGN_OR_RETURN(auto policy, choosePolicy(costs, request));
  DYNA_ASSIGN_OR_RETURN(
      ExecutableGraph graph,
      ExecutableGraph::create(*session.model, policy.strategy));
  made.graph = std::make_unique<ExecutableGraph>(std::move(graph));
  made.planner = std::make_unique<Planner>(*made.graph, std::move(costs));
  made.options = policy.options;
  made.microBatches = policy.microBatches;
  addNotes(session, policy.notes, made.name);
  return made;
}

/// What does not go together.
Status checkFlags(const TrainOptions &options) {
  for (auto [flag, isGiven] :
       {std::pair("--strategy", !options.strategy.empty()),
        {"--profile", !options.profile.empty()}})
    if (isGiven)
      return Status::invalidArgument(formatText(
          "--ranges and %s do not go together: %s", flag,
          std::string(flag) == "--strategy" ? "ranges name the strategies"
                                            : "give one strategy for it"));
  return Status::ok();
}

Status chooseRanges(Session &session) {
  const TrainOptions &options = session.options;
  DYNA_RETURN_IF_ERROR(checkFlags(options));
  DYNA_ASSIGN_OR_RETURN(auto strategies,
                        namedStrategies(*session.model, options.strategies));
  std::vector<std::string> names;
  for (const Strategy &strategy : strategies)
    names.push_back(strategy.name);
  DYNA_ASSIGN_OR_RETURN(LengthRanges ranges,
                        parseLengthRanges(options.ranges, names));
  std::vector<RunGraph> graphs;
  for (const LengthRange &range : ranges.ranges()) {
    const Strategy &own = strategies[range.strategy],
                   &first = strategies[ranges.ranges().front().strategy];
    if (own.ranks() != first.ranks())
      return Status::invalidArgument(formatText(
          "strategy '%s' has %d ranks, but strategy '%s' has %d: --ranges "
          "needs strategies of as many ranks",
          describeStrategy(own), own.ranks(), describeStrategy(first),
          first.ranks()));
    DYNA_ASSIGN_OR_RETURN(RunGraph graph,
                          makeGraph(session, strategies[range.strategy]));
    graphs.push_back(std::move(graph));
  }
  std::vector<const ExecutableGraph *> executable;
  for (const RunGraph &graph : graphs)
    executable.push_back(graph.graph.get());
  OrchestrateOptions wanted;
  wanted.home = ranges.home();
  DYNA_ASSIGN_OR_RETURN(
      Orchestration orchestration,
      orchestrate(
          executable,
          switchMaker(networkOf(graphs.front().planner->costs().cluster(),
                                executable.front()->ranks())),
          wanted));
  session.homeRange = orchestration.home();
  session.orchestration.emplace(std::move(orchestration));
  for (int range = 0; range < ranges.size(); ++range)
    if (range != session.homeRange)
      session.others.push_back(std::move(graphs[range]));
  session.home = std::move(graphs[session.homeRange]);
  session.ranges.emplace(std::move(ranges));
  if (!session.others.empty())
    session.notes.push_back(
        formatText("'%s' is home: it has the masters and makes the update",
                   session.home.name));
  return Status::ok();
}

} // namespace

Status chooseGraphs(Session &session, bool training) {
  const TrainOptions &options = session.options;
  if (options.ranges.empty() && options.mergeRanges != "auto")
    return Status::invalidArgument(
        "--merge-ranges is about --ranges, which are not given");
  if (!options.ranges.empty())
    DYNA_RETURN_IF_ERROR(chooseRanges(session));
  else {
    Strategy strategy;
    if (options.strategy.empty() && !options.strategies.empty())
      session.notes.push_back("--strategies only names strategies, and neither "
                              "--strategy nor --ranges asks for one: all is "
                              "done by one rank");
    if (!options.strategy.empty()) {
      DYNA_ASSIGN_OR_RETURN(auto known,
                            namedTexts(*session.model, options.strategies));
      DYNA_ASSIGN_OR_RETURN(strategy, findStrategy(options.strategy, known));
    }
    DYNA_ASSIGN_OR_RETURN(session.home,
                          makeGraph(session, std::move(strategy)));
  }
  for (RunGraph *graph : session.graphs())
    DYNA_RETURN_IF_ERROR(limitMicroBatches(session, *graph, training));
  session.options.tokensPerMicroBatch =
      session.home.options.maxTokensPerMicroBatch;
  return Status::ok();
}

RunGraph &graphOfLongest(Session &session) {
  return session.ranges ? *session.graphs()[session.ranges->byLength().back()]
                        : session.home;
}

Status setLongestSample(Session &session, int64_t longest) {
  if (!session.ranges) {
    session.home.options.longestSample = longest;
    return Status::ok();
  }
  DYNA_RETURN_IF_ERROR(session.ranges->hold(longest));
  const std::vector<RunGraph *> graphs = session.graphs();
  for (int range = 0; range < session.ranges->size(); ++range)
    graphs[range]->options.longestSample =
        std::min(longest, session.ranges->ranges()[range].last);
  return Status::ok();
}

Persistent persistentOf(const Session &session, const RunGraph &graph,
                        bool training) {
  if (&graph == &session.home)
    return training ? Persistent::Training : Persistent::Masters;
  return training ? Persistent::Gradients : Persistent::Values;
}

int64_t homeBytes(const Session &session, int rank, bool training) {
  return persistentLayout(session.home.graph->rankView(rank),
                          persistentOf(session, session.home, training))
      .bytes;
}

int64_t heldBytes(Session &session, int rank, bool training) {
  int64_t most = 0;
  if (session.orchestration) {
    const SwitchTable &switches = session.orchestration->switches;
    const std::vector<int> &order = session.orchestration->order;
    most = largestNeighbours(switches, order, rank, training).bytes;
    for (int graph : order)
      most = std::max(most, heldBeside(switches, order, graph, rank, training,
                                       /*takesTurns=*/true));
  }
  return homeBytes(session, rank, training) + most;
}

int64_t heldBeside(Session &session, const RunGraph &graph, bool training) {
  if (&graph == &session.home)
    return 0;
  const std::vector<RunGraph *> graphs = session.graphs();
  const int number = static_cast<int>(
      std::find(graphs.begin(), graphs.end(), &graph) - graphs.begin());
  int64_t most = 0;
  for (int rank = 0; rank < graph.graph->ranks(); ++rank)
    most = std::max(most,
                    homeBytes(session, rank, training) +
                        heldBeside(session.orchestration->switches,
                                   session.orchestration->order, number, rank,
                                   training, /*takesTurns=*/true) -
                        persistentLayout(graph.graph->rankView(rank),
                                         persistentOf(session, graph, training))
                            .bytes);
  return most;
}

void joinGraphs(Session &session, std::vector<int64_t> regionBytes) {
  if (!session.ranges)
    return;
  std::vector<const RunGraph *> graphs;
  for (const RunGraph *graph : session.graphs())
    graphs.push_back(graph);
  session.ranged = std::make_unique<RangedGraphs>(
      std::move(graphs), *session.ranges, *std::move(session.orchestration),
      session.options.mergeRanges == "auto", std::move(regionBytes));
  session.orchestration.reset();
}

} // namespace dyna
