//===- PlayedSteps.cpp - Plans and simulates steps ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/PlayedSteps.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/StateBytes.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/estimate/LackingCosts.h"
#include "runtime/planner/report/StepReport.h"
#include "runtime/planner/search/SizedSteps.h"
#include "tools/dyna-plan/WhatFits.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <numeric>

namespace dyna {

StepLengths dealSteps(std::vector<int64_t> lengths, int64_t positions,
                      const PlanFlags &flags) {
  StepLengths steps;
  const int64_t cut = cutLengths(lengths, positions);
  steps.shortens = flags.rankMemory.getNumOccurrences() > 0 || positions == 0;
  steps.longest = *std::max_element(lengths.begin(), lengths.end());
  int64_t tokens = 0;
  for (int64_t length : lengths) {
    if (steps.samples.empty() ||
        tokens + length > flags.values.tokensPerBatch) {
      if (flags.steps > 0 && int64_t(steps.samples.size()) == flags.steps)
        break;
      steps.samples.emplace_back();
      tokens = 0;
    }
    steps.samples.back().push_back(length);
    tokens += length;
  }
  if (cut > 0)
    llvm::errs() << formatText(
        cut == 1 ? "note: %d sample is cut at the model's %d positions\n"
                 : "note: %d samples are cut at the model's %d positions\n",
        cut, positions);
  return steps;
}

std::string StepLengths::shorten(int64_t limit) {
  if (longest <= limit)
    return "";
  longest = limit;
  int64_t cut = 0;
  for (std::vector<int64_t> &step : samples)
    cut += cutLengths(step, limit);
  return formatText("samples are cut at %d tokens, %d of them in these steps: "
                    "longer ones do not fit a micro-batch (--rank-memory, "
                    "--tokens-per-micro-batch)",
                    limit, cut);
}

/// Returns the plans of `--compare`, or `words` if it is not given. If all of them have
/// slices of their own, one with those of `--slices` comes first: `shared` names it.
static std::vector<std::string> comparedPlans(const PlanFlags &flags,
                                              const std::string &words,
                                              std::string &shared) {
  std::vector<std::string> plans(flags.compare.begin(), flags.compare.end());
  if (plans.empty())
    plans.push_back(words);
  const bool haveSlices =
      std::all_of(plans.begin(), plans.end(), [](const std::string &plan) {
        PlanRequest own;
        return takeWords(plan, own).isOk() && !own.slices.empty();
      });
  if (flags.slices.isGiven() && haveSlices) {
    shared = words + " slices=" + flags.values.slices;
    plans.insert(plans.begin(), words);
  }
  return plans;
}

StatusOr<std::vector<NamedRequest>> requestsOf(const PlanFlags &flags) {
  auto orElse = [](const auto &given, auto other) {
    std::vector<decltype(other)> list(given.begin(), given.end());
    if (list.empty())
      list.push_back(std::move(other));
    return list;
  };
  PlanRequest common;
  static_cast<RequestWords &>(common) = flags.values;
  std::string words = flags.microBatches;
  if (flags.pipeline.isGiven())
    words += (words.empty() ? "" : "+") + flags.pipeline;
  if (words.empty())
    words = PlanFlags::defaultWord();
  const auto sizes = orElse(flags.tokensPerMicroBatch, std::string());
  const auto modes = orElse(flags.recompute, std::string());
  std::vector<NamedRequest> requests;
  std::string shared;
  const auto plans = comparedPlans(flags, words, shared);
  for (const std::string &plan : plans)
    for (const std::string &size : sizes)
      for (const std::string &mode : modes) {
        PlanningValues values;
        static_cast<RequestWords &>(values) = common;
        if (!size.empty())
          DYNA_RETURN_IF_ERROR(
              setWord(Word::TokensPerMicroBatch, size, values));
        values.recompute = mode;
        NamedRequest &one = requests.emplace_back(NamedRequest{plan, common});
        if (&plan == &plans.front() && !shared.empty())
          one.name = shared;
        static_cast<RequestWords &>(one.request) = values;
        DYNA_RETURN_IF_ERROR(takeWords(plan, one.request));
        if (sizes.size() > 1)
          one.name += formatText(" tokens=%d", values.tokensPerMicroBatch);
        if (modes.size() > 1)
          one.name += " recompute=" + mode;
      }
  return requests;
}

/// Fails if parameters and their state leave no memory on a rank.
static Status checkRoom(const ExecutableGraph &graph, const CostModel &costs,
                        int64_t memory) {
  for (int rank = 0; memory > 0 && rank < graph.ranks(); ++rank) {
    const int64_t held =
        persistentBytes(graph.rankView(rank), costs.layerStates());
    if (held >= memory)
      return Status::resourceExhausted(formatText(
          "parameters and their state take %s of rank %d, a device has %s",
          formatBytes(held), rank, formatBytes(memory)));
  }
  return Status::ok();
}

StatusOr<RunReport>
simulateSteps(const SizedSteps &sized, const StepLengths &steps,
              const SimulationOptions &conditions, const std::string &name,
              StepOutputs &outputs,
              const std::function<void(const VerifiedStep &)> &look) {
  const StepPlanner &planner = sized.planner();
  const PlannedGraph &home = planner.home();
  const int64_t memory = home.planner->costs().table().device().memory_bytes();
  RunReport all;
  all.lackingBytes = sized.lackingBytes();
  for (const std::vector<int64_t> &samples : steps.samples) {
    const std::vector<int64_t> lengths =
        joinedLengths(home.graph->model(), samples, home.options);
    const auto begin = std::chrono::steady_clock::now();
    DYNA_ASSIGN_OR_RETURN(
        VerifiedStep step,
        planner.plan(
            lengths,
            std::accumulate(lengths.begin(), lengths.end(), INT64_C(0)),
            /*trains=*/true, /*update=*/true));
    const std::chrono::duration<double> planning =
        std::chrono::steady_clock::now() - begin;
    if (look)
      look(step);
    DYNA_ASSIGN_OR_RETURN(auto phases, playPhases(planner, step, conditions));
    if (outputs.hasTrace)
      traceStep(outputs.trace,
                {all.steps, all.seconds, outputs.processes, name}, phases,
                conditions.ranks == SimulationOptions::Ranks::Host);
    if (outputs.hasSvg && all.steps == 0)
      outputs.svg.add(name, phases);
    PlanReport report = reportStep(planner, step, phases);
    report.samples = static_cast<int64_t>(samples.size());
    if (outputs.hasPlanTimes)
      report.planSeconds = report.longestPlanSeconds = planning.count();
    all.add(report);
    if (outputs.endsWithoutRoom && !fits(all, memory))
      break;
  }
  outputs.processes += home.graph->ranks();
  return all;
}

StatusOr<RunReport> planSteps(const CostModel &costs, PlanRequest request,
                              StepLengths steps,
                              const SimulationOptions &conditions,
                              const std::string &name, StepOutputs &outputs,
                              std::vector<std::string> &notes) {
  const int64_t devices = costs.cluster().devices();
  if (devices > 0 && request.strategy.devices() > devices)
    return Status::invalidArgument(
        formatText("the strategy has %d ranks, but the cluster %d devices",
                   request.strategy.devices(), devices));
  const int64_t memory = costs.table().device().memory_bytes();
  const PlanRequest given = request;
  SizedSteps::Asked asked = SizedSteps::Asked::alone(std::move(request));
  // Two ranks of a device have equal parts of its memory.
  const int64_t rankMemory = memory / (isMirrored(given) ? 2 : 1);
  asked.memoryBytes = rankMemory;
  asked.longest = steps.longest;
  asked.shortens = steps.shortens;
  asked.isScreening = outputs.isScreening;
  DYNA_ASSIGN_OR_RETURN(auto sized,
                        SizedSteps::create(costs, std::move(asked), notes));
  if (std::string note = steps.shorten(sized->longest()); !note.empty())
    notes.push_back(std::move(note));
  if (outputs.endsWithoutRoom)
    DYNA_RETURN_IF_ERROR(
        checkRoom(*sized->planner().home().graph, costs, rankMemory));
  DYNA_ASSIGN_OR_RETURN(
      RunReport all, simulateSteps(*sized, steps, conditions, name, outputs));
  if (!outputs.endsWithoutRoom && !fits(all, memory))
    notes.push_back(name + ": " +
                    describeWhatFits(costs, given, memory, steps.longest));
  if (all.otherSchedules > 0)
    notes.push_back(formatText(
        "%s: %d of %s %s another schedule (%s), which fits the devices or is "
        "faster",
        name, all.otherSchedules, countOf(all.steps, "step"),
        all.otherSchedules == 1 ? "has" : "have",
        joinNames({all.others.begin(), all.others.end()})));
  return all;
}

std::vector<ContextErrors> sliceErrors(const CostTable &table,
                                       const PlanFlags &flags) {
  return flags.report || flags.json ? contextErrors(table)
                                    : std::vector<ContextErrors>();
}

void print(const Reports &reports, int64_t memory, const PlanFlags &flags,
           const std::vector<ContextErrors> &slices) {
  if (flags.json) {
    for (const auto &[name, report] : reports) {
      JsonObject object = report.json(name);
      object.add("fits", fits(report, memory));
      if (!slices.empty())
        object.add("slice_errors", contextJson(slices));
      llvm::outs() << object.text() << '\n';
    }
    return;
  }
  const Reports sorted = sortReports(reports, memory);
  llvm::outs() << describeReports({sorted.begin(), sorted.end()});
  if (flags.report)
    for (const auto &[name, report] : sorted)
      llvm::outs() << describeReport(name, report);
  if (flags.report)
    for (const ContextErrors &errors : slices)
      llvm::outs() << describeContext(errors) << '\n';
  for (const auto &[name, report] : sorted)
    if (!fits(report, memory))
      llvm::outs() << formatText("%s does not fit: %s\n", name,
                                 describeLack(report, memory));
  llvm::outs() << explainBest(sorted, memory);
}

} // namespace dyna
