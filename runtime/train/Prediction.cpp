//===- Prediction.cpp - Predicted beside measured -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/Prediction.h"

#include "runtime/base/Text.h"
#include "runtime/plan/PersistentLayout.h"
#include "runtime/sim/PlanTimes.h"
#include "runtime/sim/PlanTrace.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dyna {

/// What all ranks of this runtime are.
static SimulationOptions ofHosts() {
  SimulationOptions options;
  options.ranks = SimulationOptions::Ranks::Host;
  return options;
}

StatusOr<std::optional<PlanReport>>
predictStep(const Session &session, const plan::Plan &plan,
            const std::vector<int64_t> &lengths) {
  if (!session.hasCosts())
    return std::optional<PlanReport>();
  PlanWork work(*session.home.graph, plan, session.home.planner->costs());
  DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work, ofHosts()));
  PlanReport report = reportPlan(*session.home.graph, plan, work, times);
  report.count(plan, lengths);
  return std::optional<PlanReport>(std::move(report));
}

/// Numbers and sizes of micro-batches, samples and tokens of all phases.
static void countPhases(PlanReport &report, const VerifiedStep &step) {
  report.steps = 1;
  for (const VerifiedStep::Phase &phase : step.phases()) {
    PlanReport own;
    own.count(phase.plan.plan(), phase.plan.lengths());
    report.samples += own.samples;
    report.tokens += own.tokens;
    report.padding += own.padding;
    report.microBatches += own.microBatches;
    report.largestMicroBatch =
        std::max(report.largestMicroBatch, own.largestMicroBatch);
  }
}

/// Of each rank while a phase computes: home's parameters, and the end of what is in
/// the region then.
static void setPeakBytes(PlanReport &report, const ExecutableGraph &home,
                         const ExecutableGraph &graph, const VerifiedStep &step,
                         int phase) {
  for (PlanReport::Stage &stage : report.stages)
    stage.peakBytes = 0;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const int64_t bytes = persistentLayout(home.rankView(rank)).bytes +
                          stepBytes(step.blocks(rank), phase);
    PlanReport::Stage &stage = report.stages[graph.placeOf(rank).stage];
    stage.peakBytes = std::max(stage.peakBytes, bytes);
    report.rankBytes[rank] = bytes;
  }
}

StatusOr<std::optional<PlanReport>> predictPhases(const Session &session,
                                                  const PlannedPhases &phases) {
  if (!session.hasCosts())
    return std::optional<PlanReport>();
  PlanReport report;
  countPhases(report, phases.step);
  std::vector<double> busy(session.home.graph->ranks());
  report.rankBytes.resize(busy.size());
  for (int k = 0; k < phases.step.phaseCount(); ++k) {
    const VerifiedStep::Phase &phase = phases.step.phases()[k];
    const RunGraph &graph = session.ranged->graph(phase.switches.graph);
    PlanWork work(*graph.graph, phase.plan.plan(), graph.planner->costs());
    DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work, ofHosts()));
    PlanReport own = reportPlan(*graph.graph, phase.plan.plan(), work, times);
    own.count(phase.plan.plan(), phase.plan.lengths());
    setPeakBytes(own, *session.home.graph, *graph.graph, phases.step, k);
    for (size_t rank = 0; rank < busy.size(); ++rank) {
      busy[rank] += times.ranks[rank].busy;
      report.rankBytes[rank] =
          std::max(report.rankBytes[rank], own.rankBytes[rank]);
    }
    report.seconds += own.seconds;
    report.loadBound += own.loadBound;
    report.pathBound += own.pathBound;
    report.exchange += own.exchange;
    report.otherSchedules += own.otherSchedules;
    report.phases.emplace_back(graph.name, std::move(own));
  }
  report.switchSeconds = session.ranged->switchSeconds(phases.step);
  report.seconds += report.switchSeconds;
  report.bound = *std::max_element(busy.begin(), busy.end());
  return std::optional<PlanReport>(std::move(report));
}

PlanReport reportMeasured(const PlannedPhases &phases, double seconds,
                          const std::vector<RankUse> &uses) {
  PlanReport report;
  countPhases(report, phases.step);
  report.seconds = seconds;
  for (const RankUse &use : uses) {
    report.rankBytes.push_back(use.peakBytes);
    report.bound = std::max(report.bound, use.busySeconds);
  }
  return report;
}

PlanReport reportMeasured(const Session &session, const VerifiedPlan &plan,
                          double seconds, const std::vector<RankUse> &uses) {
  PlanReport report;
  report.steps = 1;
  report.seconds = seconds;
  report.count(plan.plan(), plan.lengths());
  report.stages.resize(uses.empty() ? 0 : session.home.graph->stages());
  for (const RankUse &use : uses) {
    const int rank = static_cast<int>(report.rankBytes.size());
    PlanReport::Stage &stage =
        report.stages[session.home.graph->placeOf(rank).stage];
    stage.busy = std::max(stage.busy, use.busySeconds);
    stage.peakBytes = std::max(stage.peakBytes, use.peakBytes);
    report.rankBytes.push_back(use.peakBytes);
  }
  return report;
}

Status tracePrediction(const Session &session, const plan::Plan &plan,
                       int64_t step, double begin, TraceWriter &writer) {
  PlanWork work(*session.home.graph, plan, session.home.planner->costs());
  DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work, ofHosts()));
  tracePlan(writer, {step, begin, session.home.graph->ranks(), "predicted"},
            *session.home.graph, plan, work, times, /*ofHosts=*/true);
  return Status::ok();
}

/// On the tracks that the executor has them on.
static void traceSwitch(TraceWriter &writer, const TracedStep &step,
                        const RunGraph &graph, bool isGradients,
                        double seconds) {
  TraceArguments arguments;
  arguments.step = step.step;
  arguments.phase = step.phase;
  arguments.strategy = graph.name.c_str();
  for (int rank = 0; seconds > 0 && rank < graph.graph->ranks(); ++rank) {
    const int process = step.firstProcess + rank, track = isGradients ? 2 : 1;
    writer.nameTrack(process, track,
                     isGradients ? "switches: gradients" : "switches: values");
    writer.slice(process, track,
                 isGradients ? "gradients go home" : "values come", "switch",
                 step.begin, seconds, arguments);
  }
}

Status tracePrediction(const Session &session, const PlannedPhases &phases,
                       int64_t step, double begin, TraceWriter &writer) {
  TracedStep next = {step, begin, session.home.graph->ranks(), "predicted", 0};
  for (int k = 0; k < phases.step.phaseCount(); ++k) {
    const VerifiedStep::Phase &phase = phases.step.phases()[k];
    const RunGraph &graph = session.ranged->graph(phase.switches.graph);
    const auto [values, gradients] =
        session.ranged->switchSeconds(phases.step, k);
    next.phase = k;
    traceSwitch(writer, next, graph, false, values);
    next.begin += values;
    PlanWork work(*graph.graph, phase.plan.plan(), graph.planner->costs());
    DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work, ofHosts()));
    tracePlan(writer, next, *graph.graph, phase.plan.plan(), work, times,
              /*ofHosts=*/true);
    next.begin += times.makespan;
    traceSwitch(writer, next, graph, true, gradients);
    next.begin += gradients;
  }
  return Status::ok();
}

void PredictionErrors::add(double predicted, double measured) {
  if (predicted > 0 && measured > 0)
    errors_.push_back(std::abs(predicted - measured) / measured);
}

double PredictionErrors::mean() const {
  return std::accumulate(errors_.begin(), errors_.end(), 0.0) /
         static_cast<double>(std::max<size_t>(errors_.size(), 1));
}

double PredictionErrors::p95() const {
  if (errors_.empty())
    return 0;
  std::vector<double> sorted = errors_;
  // The rank is the count's part, rounded up; in integers, as 0.95 is no number.
  size_t place = (95 * sorted.size() + 99) / 100 - 1;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(place),
                   sorted.end());
  return sorted[place];
}

std::string PredictionErrors::describe(const char *things) const {
  return formatText("mean %.1f %%, p95 %.1f %%, over %d %s", 100 * mean(),
                    100 * p95(), errors_.size(), things);
}

} // namespace dyna
