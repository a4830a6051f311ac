//===- PlanReport.cpp - What plans are worth, in numbers -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PlanReport.h"

#include "runtime/base/Text.h"
#include "runtime/plan/Bytes.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/sim/PlanTimes.h"

#include <algorithm>
#include <numeric>

namespace dyna {

static double busiest(const PlanReport &report) {
  double most = 0;
  for (const PlanReport::Stage &stage : report.stages)
    most = std::max(most, stage.busy);
  return most;
}

int64_t PlanReport::peakBytes() const {
  int64_t most = 0;
  for (const Stage &stage : stages)
    most = std::max(most, stage.peakBytes);
  return most;
}

double PlanReport::imbalance(int stage) const {
  return seconds > 0 ? (busiest(*this) - stages[stage].busy) / seconds : 0;
}

double PlanReport::bubble() const {
  return seconds > 0 ? (seconds - busiest(*this)) / seconds : 0;
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
  stages.resize(std::max(stages.size(), other.stages.size()));
  for (size_t s = 0; s < other.stages.size(); ++s) {
    stages[s].busy += other.stages[s].busy;
    stages[s].peakBytes =
        std::max(stages[s].peakBytes, other.stages[s].peakBytes);
  }
}

std::string PlanReport::json(const std::string &name) const {
  std::string text = formatText(
      "{\"plan\": \"%s\", \"steps\": %d, \"samples\": %d, \"tokens\": %d, "
      "\"micro_batches\": %d, \"largest_micro_batch\": %d, \"padding\": %d, "
      "\"seconds\": %.9g, "
      "\"bound_seconds\": %.9g, \"tokens_per_second\": %.9g, \"bubble\": %.6f, "
      "\"stages\": [",
      name, steps, samples, tokens, microBatches, largestMicroBatch, padding,
      seconds, bound, tokensPerSecond(), bubble());
  for (size_t s = 0; s < stages.size(); ++s)
    text += formatText("%s{\"busy_seconds\": %.9g, \"imbalance\": %.6f, "
                       "\"peak_bytes\": %d}",
                       s > 0 ? ", " : "", stages[s].busy,
                       imbalance(static_cast<int>(s)), stages[s].peakBytes);
  return text + "]}";
}

StatusOr<PlanReport> reportPlan(const ExecutableGraph &graph,
                                const plan::Plan &plan,
                                const CostModel &costs) {
  DYNA_ASSIGN_OR_RETURN(PlanTimes times, timePlan(graph, plan, costs));
  PlanReport report;
  report.steps = 1;
  report.seconds = times.makespan;
  for (const plan::MicroBatch &microBatch : plan.microBatches) {
    int64_t tokens = 0;
    for (const plan::Segment &segment : microBatch.segments)
      tokens += segment.length;
    report.samples += static_cast<int64_t>(microBatch.segments.size());
    report.tokens += tokens;
    report.largestMicroBatch = std::max(report.largestMicroBatch, tokens);
  }
  if (!plan.lengths.empty()) {
    int64_t real =
        std::accumulate(plan.lengths.begin(), plan.lengths.end(), INT64_C(0));
    report.padding = report.tokens - real;
    report.tokens = real;
  }
  report.microBatches = static_cast<int64_t>(plan.microBatches.size());
  report.stages.resize(graph.stages());
  for (int rank = 0; rank < plan.rankCount(); ++rank) {
    PlanReport::Stage &stage = report.stages[graph.placeOf(rank).stage];
    stage.busy = std::max(stage.busy, times.ranks[rank].busy);
    report.bound = std::max(report.bound, times.ranks[rank].busy);
    // Ranks of one place have one persistent part, but for what ZeRO deals.
    int64_t persistent = persistentLayout(graph.rankView(rank)).bytes;
    stage.peakBytes =
        std::max(stage.peakBytes, persistent + plan.ranks[rank].dynamicBytes);
  }
  return report;
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
  const char *titles = " %12s %14s %14s %10s %8s %8s %10s %12s\n";
  std::string text =
      padded("plan") + formatText(titles, "step", "of its bound", "tokens/s",
                                  "bubble", "padding", "micro-", "largest",
                                  "peak of");
  text += padded("") + formatText(titles, "seconds", "", "", "", "", "batches",
                                  "tokens", "a rank");
  for (const auto &[name, report] : reports) {
    const auto steps = static_cast<double>(std::max<int64_t>(report.steps, 1));
    text +=
        padded(name) +
        formatText(" %12.6g %14.3f %14.6g %9.1f%% %7.1f%% %8.1f %10d %12s\n",
                   report.seconds / steps,
                   report.bound > 0 ? report.seconds / report.bound : 1.0,
                   report.tokensPerSecond(), 100 * report.bubble(),
                   100 * report.paddedShare(),
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
