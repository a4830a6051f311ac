//===- PlanReport.cpp - Reports numbers of plans ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/PlanReport.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/graph/StateBytes.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/plan/program/InstructionTable.h"
#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/planner/order/PipelineTimes.h"
#include "runtime/planner/order/PlayedPipeline.h"

#include <algorithm>
#include <map>
#include <numeric>

namespace dyna {

static double busiest(const PlanReport &report) {
  if (report.stages.empty())
    return report.bound;
  double most = 0;
  for (const PlanReport::Stage &stage : report.stages)
    most = std::max(most, stage.busy);
  return most;
}

int64_t PlanReport::peakBytes() const {
  int64_t most = 0;
  for (const Stage &stage : stages)
    most = std::max(most, stage.peakBytes);
  if (stages.empty())
    for (int64_t bytes : rankBytes)
      most = std::max(most, bytes);
  return most;
}

double PlanReport::imbalance(int stage) const {
  return seconds > 0 ? (busiest(*this) - stages[stage].busy) / seconds : 0;
}

double PlanReport::bubble() const {
  return seconds > 0 ? (seconds - busiest(*this)) / seconds : 0;
}

double PlanReport::exchangeShare() const {
  return seconds > 0 ? exchange / seconds : 0;
}

double PlanReport::paddingShare() const {
  return padding > 0 ? static_cast<double>(padding) /
                           static_cast<double>(tokens + padding)
                     : 0;
}

double PlanReport::recomputeShare() const {
  return seconds > 0 ? recompute / seconds : 0;
}

double PlanReport::peakShare() const {
  return seconds > 0 && peakRate > 0 ? flops / (seconds * peakRate) : 0;
}

double PlanReport::stock(int stage) const {
  return pipelines > 0 ? stages[stage].stock / static_cast<double>(pipelines)
                       : 0;
}

void PlanReport::add(const PlanReport &other) {
  steps += other.steps;
  samples += other.samples;
  tokens += other.tokens;
  padding += other.padding;
  microBatches += other.microBatches;
  largestMicroBatch = std::max(largestMicroBatch, other.largestMicroBatch);
  seconds += other.seconds;
  bound += other.bound;
  exchange += other.exchange;
  loadBound += other.loadBound;
  pathBound += other.pathBound;
  recompute += other.recompute;
  flops += other.flops;
  peakRate = std::max(peakRate, other.peakRate);
  pipelines += other.pipelines;
  otherSchedules += other.otherSchedules;
  others.insert(other.others.begin(), other.others.end());
  planSeconds += other.planSeconds;
  longestPlanSeconds = std::max(longestPlanSeconds, other.longestPlanSeconds);
  rankBytes.resize(std::max(rankBytes.size(), other.rankBytes.size()));
  for (size_t r = 0; r < other.rankBytes.size(); ++r)
    rankBytes[r] = std::max(rankBytes[r], other.rankBytes[r]);
  stages.resize(std::max(stages.size(), other.stages.size()));
  for (size_t s = 0; s < other.stages.size(); ++s) {
    stages[s].busy += other.stages[s].busy;
    stages[s].stock += other.stages[s].stock;
    stages[s].peakBytes =
        std::max(stages[s].peakBytes, other.stages[s].peakBytes);
  }
  if (cuts.empty())
    cuts = other.cuts;
  switchSeconds += other.switchSeconds;
  switchAloneSeconds += other.switchAloneSeconds;
  switchBytes += other.switchBytes;
  for (const auto &phase : other.phases) {
    auto own =
        std::find_if(phases.begin(), phases.end(), [&](const auto &known) {
          return known.first == phase.first;
        });
    if (own == phases.end())
      phases.push_back(phase);
    else
      own->second.add(phase.second);
  }
}

void PlanReport::orderPhases(const std::vector<std::string> &names) {
  auto placeOf = [&](const auto &phase) {
    return std::find(names.begin(), names.end(), phase.first);
  };
  std::sort(phases.begin(), phases.end(), [&](const auto &a, const auto &b) {
    return placeOf(a) < placeOf(b);
  });
}

JsonObject PlanReport::json(const std::string &name) const {
  JsonObject object;
  if (!name.empty())
    object.add("plan", name);
  object.add("steps", steps)
      .add("samples", samples)
      .add("tokens", tokens)
      .add("micro_batches", microBatches)
      .add("largest_micro_batch", largestMicroBatch)
      .add("padding", padding)
      .add("padding_share", jsonFixed(paddingShare(), 6))
      .add("seconds", jsonRounded(seconds, 9))
      .add("bound_seconds", jsonRounded(leastSeconds(), 9))
      .add("busy_bound_seconds", jsonRounded(bound, 9))
      .add("load_bound_seconds", jsonRounded(loadBound, 9))
      .add("path_bound_seconds", jsonRounded(pathBound, 9))
      .add("tokens_per_second", jsonRounded(tokensPerSecond(), 9))
      .add("bubble", jsonFixed(bubble(), 6))
      .add("exchange", jsonFixed(exchangeShare(), 6))
      .add("recompute", jsonFixed(recomputeShare(), 6))
      .add("model_flops", jsonRounded(flops, 9))
      .add("peak_share",
           peakRate > 0 ? jsonFixed(peakShare(), 6) : JsonText::null())
      .add("other_schedules", otherSchedules);
  if (planSeconds > 0)
    object.add("plan_seconds", jsonRounded(planSeconds, 6))
        .add("longest_plan_seconds", jsonRounded(longestPlanSeconds, 6));
  if (!phases.empty() || switchBytes > 0)
    object.add("switch_seconds", jsonRounded(switchSeconds, 9))
        .add("switch_alone_seconds", jsonRounded(switchAloneSeconds, 9))
        .add("switch_bytes", switchBytes);
  if (!cuts.empty())
    object.add("cuts", cutsJson(cuts));
  if (phases.empty())
    return object.addAll(stagesJson());
  JsonArray ofPhases;
  for (const auto &[strategy, report] : phases)
    ofPhases.add(report.json(strategy));
  return object.addAll(rankBytesJson()).add("phases", ofPhases);
}

JsonObject PlanReport::stagesJson() const {
  JsonArray ofStages;
  for (size_t s = 0; s < stages.size(); ++s) {
    const int stage = static_cast<int>(s);
    JsonObject one;
    one.add("busy_seconds", jsonRounded(stages[s].busy, 9))
        .add("imbalance", jsonFixed(imbalance(stage), 6));
    if (pipelines > 0)
      one.add("safety_stock", jsonFixed(stock(stage), 3));
    ofStages.add(one.add("peak_bytes", stages[s].peakBytes));
  }
  return JsonObject().add("stages", ofStages).addAll(rankBytesJson());
}

JsonObject PlanReport::rankBytesJson() const {
  JsonArray ofRanks;
  for (int64_t bytes : rankBytes)
    ofRanks.add(bytes);
  return JsonObject().add("rank_peak_bytes", ofRanks);
}

double endOfMicroBatches(const plan::Plan &plan, const PlanTimes &times) {
  double end = 0;
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    const auto &program = plan.ranks[rank].instructions;
    for (size_t i = 0; i < program.size(); ++i)
      if (isPerMicroBatch(program[i].op) && roleOf(program[i]) >= 0)
        end = std::max(end, times.ranks[rank].instructions[i].end);
  }
  return end;
}

/// Returns the seconds after all micro-batches in which no rank is in a
/// function.
static double secondsOfExchange(const plan::Plan &plan,
                                const PlanTimes &times) {
  double end = endOfMicroBatches(plan, times), seconds = 0;
  std::vector<TaskTime> calls;
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    const auto &program = plan.ranks[rank].instructions;
    for (size_t i = 0; i < program.size(); ++i)
      if (roleOf(program[i]) >= 0)
        calls.push_back(times.ranks[rank].instructions[i]);
  }
  std::sort(calls.begin(), calls.end(),
            [](const auto &a, const auto &b) { return a.start < b.start; });
  for (const TaskTime &call : calls) {
    seconds += std::max(0.0, call.start - end);
    end = std::max(end, call.end);
  }
  return seconds + std::max(0.0, times.makespan - end);
}

/// Returns the seconds after all pipelines. Norms are summed when every
/// gradient is complete, and updates come after them.
static double secondsOfUpdates(const plan::Plan &plan, const PlanWork &work) {
  double norms = 0, updates = 0;
  for (const PlannedTransfer &transfer : work.transfers())
    if (transfer.kind == PlannedTransfer::Kind::Norm)
      norms += transfer.seconds;
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    double own = 0;
    const auto &program = plan.ranks[rank].instructions;
    for (size_t i = 0; i < program.size(); ++i)
      if (program[i].op == plan::Instruction::UPDATE)
        own += work.steps(rank)[static_cast<int>(i)].seconds;
    updates = std::max(updates, own);
  }
  return norms + updates;
}

static void reportPipelines(PlanReport &report, const ExecutableGraph &graph,
                            const plan::Plan &plan, const PlanWork &work,
                            const PlanTimes &times) {
  const double updates = secondsOfUpdates(plan, work);
  const auto replicas = microBatchesOfReplicas(plan, graph.replicas());
  for (int replica = 0; replica < graph.replicas(); ++replica) {
    if (replicas[replica].empty())
      continue;
    PlayedPipeline played =
        playedPipeline(graph, plan, work, times, replica, replicas[replica]);
    PipelineBounds bounds = boundPipeline(played.problem);
    report.loadBound = std::max(report.loadBound, bounds.load + updates);
    report.pathBound = std::max(report.pathBound, bounds.path + updates);
    ++report.pipelines;
    std::vector<SafetyStock> stocks =
        safetyStockOf(played.orders, played.problem);
    for (int stage = 0; stage < graph.stages(); ++stage)
      report.stages[stage].stock += stocks[stage].median;
  }
}

/// Returns the flops of samples of these lengths: forward, and twice that for
/// backward.
static double trainingFlops(const Model &model,
                            const std::vector<int64_t> &lengths) {
  double perStep = 0;
  for (int l = 0; l < model.layers(); ++l) {
    const plan::LayerKind &kind = model.kind(l);
    for (int64_t length : lengths)
      perStep +=
          static_cast<double>(kind.flops_per_token() +
                              kind.flops_per_target()) *
              static_cast<double>(length) +
          static_cast<double>(kind.attention_flops_per_pair()) *
              static_cast<double>(visiblePairs(kind, loadOfSample(length)));
  }
  return 3 * perStep;
}

void PlanReport::count(const Model &model, const plan::Plan &plan,
                       const std::vector<int64_t> &lengths) {
  samples = tokens = padding = largestMicroBatch = 0;
  std::map<int64_t, int64_t> lengthOf; // by sample, summed over all its slices
  for (const plan::MicroBatch &microBatch : plan.microBatches) {
    int64_t size = 0;
    for (const plan::Segment &segment : microBatch.segments) {
      size += segment.length;
      lengthOf[segment.sample] += segment.length;
    }
    tokens += size;
    largestMicroBatch = std::max(largestMicroBatch, size);
  }
  samples = static_cast<int64_t>(lengthOf.size());
  std::vector<int64_t> counted = lengths;
  if (lengths.empty())
    for (const auto &[sample, length] : lengthOf)
      counted.push_back(length);
  if (!lengths.empty()) {
    int64_t real = std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
    padding = tokens - real;
    tokens = real;
  }
  microBatches = static_cast<int64_t>(plan.microBatches.size());
  flops = trainingFlops(model, counted);
}

/// Seconds in functions that compute saved values again, mean of the devices.
static double secondsOfRecomputation(const plan::Plan &plan,
                                     const PlanWork &work, int devices) {
  double seconds = 0;
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    const auto &program = plan.ranks[rank].instructions;
    for (size_t i = 0; i < program.size(); ++i)
      if (program[i].op == plan::Instruction::RECOMPUTE)
        seconds += work.steps(rank)[static_cast<int>(i)].seconds;
  }
  return seconds / std::max(devices, 1);
}

PlanReport reportPlan(const ExecutableGraph &graph, const plan::Plan &plan,
                      const CostModel &costs, const PlanWork &work,
                      const PlanTimes &times) {
  PlanReport report;
  report.steps = 1;
  report.peakRate = costs.peakFlopRate() * graph.devices();
  report.seconds = times.makespan;
  report.exchange = secondsOfExchange(plan, times);
  report.recompute = secondsOfRecomputation(plan, work, graph.devices());
  report.count(graph.model(), plan, plan.lengths);
  if (!plan.fallback.empty()) {
    report.otherSchedules = 1;
    report.others.insert(plan.fallback);
  }
  report.stages.resize(graph.stages());
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    // Ranks of one place have equal persistent parts, except for shares of
    // ZeRO.
    report.rankBytes.push_back(
        persistentBytes(graph.rankView(rank), costs.layerStates()) +
        plan.ranks[rank].dynamicBytes);
  }
  // A stage has the numbers of its device, which may have another rank.
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    double busy = times.ranks[rank].busy;
    int64_t bytes = report.rankBytes[rank];
    if (const int twin = graph.twinOf(rank); twin >= 0) {
      busy += times.ranks[twin].busy;
      bytes += report.rankBytes[twin];
    }
    PlanReport::Stage &stage = report.stages[graph.placeOf(rank).stage];
    stage.busy = std::max(stage.busy, busy);
    report.bound = std::max(report.bound, busy);
    stage.peakBytes = std::max(stage.peakBytes, bytes);
  }
  reportPipelines(report, graph, plan, work, times);
  report.cuts = reportCuts(plan, work);
  return report;
}

StatusOr<PlanReport> reportPlan(const ExecutableGraph &graph,
                                const plan::Plan &plan,
                                const CostModel &costs) {
  PlanWork work(graph, plan, costs);
  DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work));
  return reportPlan(graph, plan, costs, work, times);
}

/// Describes the stages of a step with one graph.
static std::string describeStages(const PlanReport &report) {
  const auto steps = static_cast<double>(std::max<int64_t>(report.steps, 1));
  std::string text =
      formatText("  %-6s %11s %8s %10s %8s %6s %12s\n", "stage", "seconds",
                 "busy", "imbalance", "bubble", "stock", "peak");
  for (size_t s = 0; s < report.stages.size(); ++s) {
    const int stage = static_cast<int>(s);
    text += formatText(
        "  %-6d %11.6g %7.1f%% %9.1f%% %7.1f%% %6.2f %12s\n", stage,
        report.stages[s].busy / steps,
        report.seconds > 0 ? 100 * report.stages[s].busy / report.seconds : 0.0,
        100 * report.imbalance(stage), 100 * report.bubble(),
        report.stock(stage), formatBytes(report.stages[s].peakBytes));
  }
  return text;
}

/// Describes a step with several phases. Seconds and bytes are means over all
/// steps.
static std::string describePhases(const PlanReport &report) {
  const auto steps = static_cast<double>(std::max<int64_t>(report.steps, 1));
  std::string text =
      formatText("  %-12s %8s %9s %8s %11s %11s %11s %11s %11s %10s %12s\n",
                 "phase", "samples", "tokens", "micro-", "seconds", "for load",
                 "longest way", "busiest", "switches s", "sent", "peak");
  for (const auto &[strategy, phase] : report.phases)
    text += formatText(
        "  %-12s %8d %9d %8.1f %11.6g %11.6g %11.6g %11.6g %11.6g %10s "
        "%12s\n",
        strategy, phase.samples, phase.tokens,
        static_cast<double>(phase.microBatches) / steps, phase.seconds / steps,
        phase.loadBound / steps, phase.pathBound / steps, phase.bound / steps,
        phase.switchSeconds / steps,
        formatBytes(static_cast<int64_t>(
            static_cast<double>(phase.switchBytes) / steps)),
        formatBytes(phase.peakBytes()));
  return text +
         formatText("  a rank waits at most %.6g s of a step for switches, "
                    "which alone take %.6g s; ranks send %s to others\n",
                    report.switchSeconds / steps,
                    report.switchAloneSeconds / steps,
                    formatBytes(static_cast<int64_t>(
                        static_cast<double>(report.switchBytes) / steps)));
}

std::string describeReport(const std::string &name, const PlanReport &report) {
  const auto steps = static_cast<double>(std::max<int64_t>(report.steps, 1));
  std::string text = formatText(
      "%s: %d step%s of %.1f micro-batches, %d sample%s, %d tokens, beside "
      "them "
      "%.1f%% of all as padding\n"
      "  a step takes %.6g s; at least %.6g s for the load of its stages, "
      "%.6g s for its longest way, %.6g s for its busiest rank\n",
      name, report.steps, report.steps == 1 ? "" : "s",
      static_cast<double>(report.microBatches) / steps, report.samples,
      report.samples == 1 ? "" : "s", report.tokens,
      100 * report.paddingShare(), report.seconds / steps,
      report.loadBound / steps, report.pathBound / steps, report.bound / steps);
  text +=
      report.phases.empty() ? describeStages(report) : describePhases(report);
  text += describeCuts(report.cuts);
  for (const auto &[strategy, phase] : report.phases)
    text += describeCuts(phase.cuts);
  text += formatText("  of the bubble %.1f%% of the step: exchanges when no "
                     "micro-batch is left\n  peak of ranks:",
                     100 * report.exchangeShare());
  for (size_t r = 0; r < report.rankBytes.size(); ++r)
    text += formatText("%s %d %s", r > 0 ? "," : "", r,
                       formatBytes(report.rankBytes[r]));
  return text + "\n";
}

std::string describeReports(
    const std::vector<std::pair<std::string, PlanReport>> &reports) {
  size_t width = 14;
  for (const auto &[name, report] : reports)
    width = std::max(width, name.size());
  auto padded = [&](std::string name) {
    name.resize(width, ' ');
    return name;
  };
  const char *titles = " %12s %14s %14s %8s %8s %8s %8s %8s %10s %12s\n";
  std::string text =
      padded("plan") + formatText(titles, "step", "of its bound", "tokens/s",
                                  "of peak", "bubble", "recom-", "padding",
                                  "micro-", "largest", "peak of");
  text += padded("") + formatText(titles, "seconds", "", "", "flops", "",
                                  "puted", "", "batches", "tokens", "a rank");
  for (const auto &[name, report] : reports) {
    const auto steps = static_cast<double>(std::max<int64_t>(report.steps, 1));
    text +=
        padded(name) +
        formatText(
            " %12.6g %14.3f %14.6g %8s %7.1f%% %7.1f%% %7.1f%% %8.1f "
            "%10d %12s\n",
            report.seconds / steps,
            report.leastSeconds() > 0 ? report.seconds / report.leastSeconds()
                                      : 1.0,
            report.tokensPerSecond(),
            report.peakRate > 0 ? formatText("%.1f%%", 100 * report.peakShare())
                                : "-",
            100 * report.bubble(), 100 * report.recomputeShare(),
            100 * report.paddingShare(),
            static_cast<double>(report.microBatches) / steps,
            report.largestMicroBatch, formatBytes(report.peakBytes()));
  }
  for (const auto &[name, report] : reports) {
    if (report.stages.size() < 2)
      continue;
    text += name + ": imbalance and peak by stage:";
    for (size_t s = 0; s < report.stages.size(); ++s)
      text += formatText("%s %.1f%% %s", s > 0 ? "," : "",
                         100 * report.imbalance(static_cast<int>(s)),
                         formatBytes(report.stages[s].peakBytes));
    text += "\n";
  }
  return text;
}

} // namespace dyna
