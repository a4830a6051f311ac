//===- ChooseGraphs.cpp - Makes graphs of the strategies of a run ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/open/ChooseGraphs.h"

#include "runtime/base/text/Text.h"
#include "runtime/train/flags/NamedStrategies.h"
#include "runtime/train/session/Devices.h"
#include "runtime/transport/ProcessTransport.h"
#include "runtime/transport/threads/ThreadTransport.h"

#include <algorithm>

namespace dyna {
namespace {

PlanRequest planRequest(const TrainOptions &options, Strategy strategy) {
  PlanRequest request;
  request.strategy = std::move(strategy);
  static_cast<RequestWords &>(request) = options;
  request.norms = !options.noGradientNorm;
  return request;
}

/// Adds notes about one strategy, with its name if there are several.
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

/// Sizes micro-batches by --rank-memory, if no flag sets their size.
Status limitByFlag(Session &session, PlannedGraph &graph, bool training) {
  const TrainOptions &options = session.options;
  if (options.rankMemory.empty())
    return Status::ok();
  DYNA_ASSIGN_OR_RETURN(int64_t rankBytes, parseBytes(options.rankMemory));
  std::vector<std::string> notes;
  DYNA_RETURN_IF_ERROR(limitMicroBatches(
      *session.graphs, graph, planRequest(options, graph.graph->strategy()),
      training, rankBytes, notes));
  addNotes(session, std::move(notes), graph.name);
  return Status::ok();
}

/// Fails if the number of ranks is impossible, before much is made for each
/// rank.
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

/// Fails if flags or the launcher exclude two ranks on a device (Chimera).
Status checkMirrored(const Session &session, const PlanRequest &request) {
  if (!isMirrored(request))
    return Status::ok();
  const TrainOptions &options = session.options;
  if (launchedProcesses() > 1)
    return Status::invalidArgument(formatText(
        "--pipeline chimera gives each device two ranks, which have to be "
        "threads of one process, but %d processes were started: start the "
        "program alone, or give another --pipeline",
        launchedProcesses()));
  for (auto [flag, isGiven] :
       {std::pair("--ranges", session.hasRanges()),
        {"--rebalance", !options.rebalance.empty()},
        {"--profile", !options.profile.empty()},
        {"--repack auto", options.repack.find("auto") != std::string::npos}})
    if (isGiven)
      return Status::invalidArgument(formatText(
          "--pipeline chimera and %s do not go together: leave out %s, or give "
          "another --pipeline",
          flag, flag));
  // --profile tries other strategies than the given one, so this comes last.
  return mirrorReplicas(request.strategy).status();
}

/// Makes the graph of a strategy, with the options of its plans.
StatusOr<PlannedGraph> makeGraph(Session &session, Strategy strategy) {
  const TrainOptions &options = session.options;
  DYNA_RETURN_IF_ERROR(checkRanks(options, strategy));
  DYNA_RETURN_IF_ERROR(checkMirrored(session, planRequest(options, strategy)));
  DYNA_ASSIGN_OR_RETURN(auto costs,
                        CostModel::open(*session.model, options.costs));
  std::vector<std::string> notes;
  DYNA_ASSIGN_OR_RETURN(
      PlannedGraph made,
      planGraph(costs, planRequest(options, std::move(strategy)), notes));
  addNotes(session, std::move(notes), made.name);
  return made;
}

/// Fails if flags exclude --ranges.
Status checkFlags(const TrainOptions &options) {
  DYNA_RETURN_IF_ERROR(checkBatching(options));
  for (auto [flag, isGiven] :
       {std::pair("--strategy", !options.strategy.empty()),
        {"--profile", !options.profile.empty()}})
    if (isGiven)
      return Status::invalidArgument(formatText(
          "--ranges and %s do not go together: %s", flag,
          std::string(flag) == "--strategy" ? "ranges name the strategies"
                                            : "measure one strategy of each "
                                              "tensor degree, --strategy NAME "
                                              "--profile FILE, all into one "
                                              "file, which is --costs then"));
  return Status::ok();
}

/// Adds a note about strategies that are given now but used by no range. A
/// resumed run keeps its ranges, so such a strategy is probably a mistake.
void noteUnused(Session &session, const LengthRanges &ranges) {
  const TrainOptions &options = session.options;
  if (options.resume.empty() || !options.isGiven("strategies") ||
      options.isGiven("ranges"))
    return;
  auto given = parseStrategies(options.strategies);
  if (!given.isOk()) // was read before
    return;
  std::string unused, used;
  for (const Strategy &strategy : *given) {
    const bool isUsed = std::any_of(
        ranges.ranges().begin(), ranges.ranges().end(),
        [&](const LengthRange &range) { return range.name == strategy.name; });
    std::string &list = isUsed ? used : unused;
    list += (list.empty() ? "" : ", ") + strategy.name;
  }
  if (!unused.empty())
    session.notes.push_back(
        formatText("no range is of the strategies %s: the saved ranges are of "
                   "%s; --ranges gives others",
                   unused, used.empty() ? "other ones" : used));
}

/// Notes that --pipeline has no effect with one stage. An exception is 'gpipe',
/// which describes its windows.
void noteUnusedPipeline(Session &session) {
  const std::string &pipeline = session.options.pipeline;
  if (pipeline.empty() || pipeline == ruleOf(Schedule::GPipe).name)
    return;
  for (const PlannedGraph &graph : session.graphs->graphs())
    if (graph.graph->stages() > 1)
      return;
  session.notes.push_back(
      formatText("--pipeline %s is not used: there is one stage", pipeline));
}

Status chooseRanges(Session &session) {
  const TrainOptions &options = session.options;
  DYNA_RETURN_IF_ERROR(checkFlags(options));
  DYNA_ASSIGN_OR_RETURN(auto strategies,
                        namedStrategies(*session.model, options.strategies));
  std::vector<std::string> names;
  for (const Strategy &strategy : strategies)
    names.push_back(strategy.name);
  auto parsed = parseLengthRanges(options.ranges, names);
  if (!parsed.isOk() && !options.resume.empty() && !options.isGiven("ranges"))
    return Status::invalidArgument(
        parsed.status().message() +
        "; the ranges are those of the saved run: --ranges gives others, and "
        "--strategy one strategy for all lengths");
  DYNA_RETURN_IF_ERROR(parsed.status());
  LengthRanges ranges = *std::move(parsed);
  DYNA_RETURN_IF_ERROR(checkEqualRanks(ranges, strategies));
  noteUnused(session, ranges);
  std::vector<PlannedGraph> graphs;
  for (const LengthRange &range : ranges.ranges()) {
    DYNA_ASSIGN_OR_RETURN(PlannedGraph graph,
                          makeGraph(session, strategies[range.strategy]));
    graphs.push_back(std::move(graph));
  }
  DYNA_ASSIGN_OR_RETURN(
      session.graphs, StepGraphs::create(std::move(ranges), std::move(graphs)));
  if (session.graphs->areSeveral())
    session.notes.push_back(
        formatText("'%s' is home: it has the masters and makes the update",
                   session.home().name));
  return Status::ok();
}

/// Chooses the graph of --strategy, for samples of all lengths.
Status chooseStrategy(Session &session) {
  const TrainOptions &options = session.options;
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
  std::vector<PlannedGraph> graphs;
  DYNA_ASSIGN_OR_RETURN(PlannedGraph graph,
                        makeGraph(session, std::move(strategy)));
  LengthRanges all = LengthRanges::ofAll(graph.name);
  graphs.push_back(std::move(graph));
  DYNA_ASSIGN_OR_RETURN(session.graphs,
                        StepGraphs::create(std::move(all), std::move(graphs)));
  return Status::ok();
}

} // namespace

Status chooseGraphs(Session &session, bool training) {
  const TrainOptions &options = session.options;
  if (options.ranges.empty() &&
      (options.mergeRanges != "auto" || options.isGiven("merge-ranges")))
    return Status::invalidArgument(
        "--merge-ranges is about --ranges, which are not given");
  DYNA_RETURN_IF_ERROR(session.hasRanges() ? chooseRanges(session)
                                           : chooseStrategy(session));
  if (std::string note = session.home().planner->costs().describeOtherType();
      !note.empty())
    session.notes.push_back(std::move(note));
  noteUnusedPipeline(session);
  for (PlannedGraph &graph : session.graphs->graphs())
    DYNA_RETURN_IF_ERROR(limitByFlag(session, graph, training));
  session.options.chosenMicroBatch =
      session.home().options.maxTokensPerMicroBatch;
  return Status::ok();
}

} // namespace dyna
