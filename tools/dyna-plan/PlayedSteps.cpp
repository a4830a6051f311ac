//===- PlayedSteps.cpp - Steps, planned and played -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/PlayedSteps.h"

#include "runtime/base/Text.h"
#include "runtime/plan/graph/PersistentLayout.h"
#include "runtime/plan/verify/PlanVerifier.h"
#include "runtime/planner/estimate/LackingCosts.h"
#include "runtime/planner/graph/CutMiniBatch.h"
#include "runtime/planner/graph/Planner.h"
#include "runtime/planner/search/ChooseStrategies.h"
#include "runtime/planner/search/SizedSteps.h"
#include "tools/dyna-plan/WhatFits.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <chrono>
#include <limits>
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
    if (steps.samples.empty() || tokens + length > flags.tokensPerBatch) {
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

StatusOr<std::vector<NamedRequest>> requestsOf(const PlanFlags &flags) {
  auto orElse = [](const auto &given, auto other) {
    std::vector<decltype(other)> list(given.begin(), given.end());
    if (list.empty())
      list.push_back(std::move(other));
    return list;
  };
  PlanRequest common;
  common.tokensPerBatch = flags.tokensPerBatch;
  const auto sizes = orElse(flags.tokensPerMicroBatch, int64_t(0));
  const auto modes = orElse(flags.recompute, std::string());
  std::vector<NamedRequest> requests;
  for (const std::string &words :
       orElse(flags.compare, PlanFlags::defaultWord()))
    for (int64_t size : sizes)
      for (const std::string &mode : modes) {
        NamedRequest &one = requests.emplace_back(NamedRequest{words, common});
        DYNA_RETURN_IF_ERROR(takeWords(words, one.request));
        one.request.tokensPerMicroBatch = size;
        one.request.recompute = mode;
        if (sizes.size() > 1)
          one.name += formatText(" tokens=%d", size);
        if (modes.size() > 1)
          one.name += " recompute=" + mode;
      }
  return requests;
}

/// That parameters and their state alone leave some.
static Status checkRoom(const ExecutableGraph &graph, int64_t memory) {
  for (int rank = 0; memory > 0 && rank < graph.ranks(); ++rank) {
    const int64_t held = persistentLayout(graph.rankView(rank)).bytes;
    if (held >= memory)
      return Status::resourceExhausted(formatText(
          "parameters and their state take %s of rank %d, a device has %s",
          formatBytes(held), rank, formatBytes(memory)));
  }
  return Status::ok();
}

/// What plans of all steps are made by.
struct StepsOfRequest {
  const CostModel &costs;
  const ExecutableGraph &graph;
  const Planner &planner;
  const PlanOptions &options;
  const SimulationOptions &conditions;
  const std::string &name;
};

/// Planned, proven and played. `before` is what steps before it have.
static StatusOr<PlanReport> planStep(const StepsOfRequest &of,
                                     const std::vector<int64_t> &step,
                                     const PlanReport &before,
                                     StepOutputs &outputs) {
  const std::vector<int64_t> lengths =
      joinedLengths(of.costs.model(), step, of.options);
  const int64_t tokens =
      std::accumulate(lengths.begin(), lengths.end(), int64_t(0));
  const auto begin = std::chrono::steady_clock::now();
  DYNA_ASSIGN_OR_RETURN(auto plan,
                        of.planner.training(lengths, tokens, of.options));
  plan.lengths = lengths;
  VerifyOptions verify;
  verify.dynamicLimit = std::numeric_limits<int64_t>::max();
  DYNA_RETURN_IF_ERROR(verifyPlan(of.graph, plan, lengths, verify));
  const std::chrono::duration<double> planning =
      std::chrono::steady_clock::now() - begin;
  PlanWork work(of.graph, plan, of.costs);
  DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work, of.conditions));
  if (outputs.hasTrace)
    tracePlan(outputs.trace,
              {before.steps, before.seconds, outputs.processes, of.name},
              of.graph, plan, work, times,
              of.conditions.ranks == SimulationOptions::Ranks::Host);
  if (outputs.hasSvg && before.steps == 0)
    outputs.svg.add(of.name, of.graph, plan, times);
  PlanReport report = reportPlan(of.graph, plan, of.costs, work, times);
  report.samples = static_cast<int64_t>(step.size());
  if (outputs.hasPlanTimes)
    report.planSeconds = report.longestPlanSeconds = planning.count();
  return report;
}

StatusOr<PlanReport> planSteps(const CostModel &costs, PlanRequest request,
                               StepLengths steps,
                               const SimulationOptions &conditions,
                               const std::string &name, StepOutputs &outputs,
                               std::vector<std::string> &notes) {
  const int64_t devices = costs.cluster().devices();
  if (devices > 0 && request.strategy.ranks() > devices)
    return Status::invalidArgument(
        formatText("the strategy has %d ranks, but the cluster %d devices",
                   request.strategy.ranks(), devices));
  const int64_t memory = costs.table().device().memory_bytes();
  const PlanRequest given = request;
  SizedSteps::Asked asked = SizedSteps::Asked::alone(std::move(request));
  asked.memoryBytes = memory;
  asked.longest = steps.longest;
  asked.shortens = steps.shortens;
  DYNA_ASSIGN_OR_RETURN(auto sized,
                        SizedSteps::create(costs, std::move(asked), notes));
  if (std::string note = steps.shorten(sized->longest()); !note.empty())
    notes.push_back(std::move(note));
  const PlannedGraph &home = sized->planner().home();
  const ExecutableGraph &graph = *home.graph;
  if (outputs.endsWithoutRoom)
    DYNA_RETURN_IF_ERROR(checkRoom(graph, memory));
  const StepsOfRequest of = {costs,        graph,      *home.planner,
                             home.options, conditions, name};
  PlanReport all;
  for (const std::vector<int64_t> &step : steps.samples) {
    DYNA_ASSIGN_OR_RETURN(auto report, planStep(of, step, all, outputs));
    all.add(report);
    if (outputs.endsWithoutRoom && !fits(all, memory))
      break;
  }
  outputs.processes += graph.ranks();
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

void print(const Reports &reports, int64_t memory, const PlanFlags &flags) {
  if (flags.json) {
    for (const auto &[name, report] : reports)
      llvm::outs() << report.json(name) << '\n';
    return;
  }
  const Reports sorted = sortReports(reports, memory);
  llvm::outs() << describeReports(sorted);
  if (flags.report)
    for (const auto &[name, report] : sorted)
      llvm::outs() << describeReport(name, report);
  for (const auto &[name, report] : sorted)
    if (!fits(report, memory))
      llvm::outs() << formatText(
          "%s does not fit: a rank takes %s, a device has %s\n", name,
          formatBytes(report.peakBytes()), formatBytes(memory));
  llvm::outs() << explainBest(sorted, memory);
}

} // namespace dyna
