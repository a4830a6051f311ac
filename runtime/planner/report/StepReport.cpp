//===- StepReport.cpp - Steps of several graphs, played -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/StepReport.h"

#include "runtime/plan/graph/PersistentLayout.h"

#include <algorithm>

namespace dyna {

StatusOr<std::vector<PlayedPhase>>
playPhases(const StepPlanner &planner, const VerifiedStep &step,
           const SimulationOptions &options) {
  std::vector<PlayedPhase> phases;
  for (int k = 0; k < step.phaseCount(); ++k) {
    const VerifiedStep::Phase &phase = step.phases()[k];
    const PlannedGraph &graph = planner.graph(phase.switches.graph);
    PlanWork work(*graph.graph, phase.plan, graph.planner->costs());
    DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work, options));
    phases.push_back({planner.graphs().areSeveral() ? k : -1, &graph, &phase,
                      planner.switchCosts(step, k), std::move(work),
                      std::move(times)});
  }
  return phases;
}

void countPhases(PlanReport &report, const Model &model,
                 const VerifiedStep &step) {
  report.steps = 1;
  for (const VerifiedStep::Phase &phase : step.phases()) {
    PlanReport own;
    own.count(model, phase.plan, phase.lengths);
    report.samples += own.samples;
    report.tokens += own.tokens;
    report.padding += own.padding;
    report.flops += own.flops;
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

PlanReport reportStep(const StepPlanner &planner, const VerifiedStep &step,
                      const std::vector<PlayedPhase> &phases) {
  const ExecutableGraph &home = *planner.home().graph;
  PlanReport report;
  countPhases(report, home.model(), step);
  std::vector<double> busy(home.ranks());
  report.rankBytes.resize(busy.size());
  for (size_t k = 0; k < phases.size(); ++k) {
    const PlayedPhase &phase = phases[k];
    const ExecutableGraph &graph = *phase.graph->graph;
    PlanReport own =
        reportPlan(graph, phase.phase->plan, phase.graph->planner->costs(),
                   phase.work, phase.times);
    own.count(graph.model(), phase.phase->plan, phase.phase->lengths);
    if (!planner.graphs().areSeveral())
      return own;
    report.peakRate = own.peakRate;
    setPeakBytes(own, home, graph, step, static_cast<int>(k));
    own.switchSeconds = phase.switches.seconds();
    own.switchBytes = phase.switches.bytes();
    for (size_t rank = 0; rank < busy.size(); ++rank) {
      busy[rank] += phase.times.ranks[rank].busy;
      report.rankBytes[rank] =
          std::max(report.rankBytes[rank], own.rankBytes[rank]);
    }
    report.seconds += own.seconds + own.switchSeconds;
    report.loadBound += own.loadBound;
    report.pathBound += own.pathBound;
    report.exchange += own.exchange;
    report.recompute += own.recompute;
    report.otherSchedules += own.otherSchedules;
    report.others.insert(own.others.begin(), own.others.end());
    report.switchSeconds += own.switchSeconds;
    report.switchBytes += own.switchBytes;
    report.phases.emplace_back(phase.graph->name, std::move(own));
  }
  report.bound = *std::max_element(busy.begin(), busy.end());
  return report;
}

namespace {
/// A track that the executor has, too (runtime/executor/Trace.h).
struct PhaseTrack {
  int track;
  const char *name, *category;
};
const PhaseTrack valueTrack = {1, "switches: values", "switch"},
                 gradientTrack = {2, "switches: gradients", "switch"},
                 phaseTrack = {3, "phases", "phase"};
} // namespace

/// Writes one slice on each rank, from where `step` begins. Returns its end.
static double tracePhase(TraceWriter &writer, const TracedStep &step,
                         const PlannedGraph &graph, const PhaseTrack &track,
                         const std::string &name, double seconds) {
  TraceArguments arguments;
  arguments.step = step.step;
  arguments.phase = step.phase;
  arguments.strategy = graph.name.c_str();
  const double end = step.begin + seconds;
  for (int rank = 0; seconds > 0 && rank < graph.graph->ranks(); ++rank) {
    const int process = step.firstProcess + rank;
    writer.nameTrack(process, track.track, track.name);
    writer.slice(process, track.track, name, track.category, step.begin, end,
                 arguments);
  }
  return end;
}

double traceStep(TraceWriter &writer, TracedStep step,
                 const std::vector<PlayedPhase> &phases, bool ofHosts) {
  for (const PlayedPhase &phase : phases) {
    step.phase = phase.number;
    step.begin = tracePhase(writer, step, *phase.graph, valueTrack,
                            "values come", phase.switches.valueSeconds);
    const double end =
        phase.number < 0 ? step.begin + phase.times.makespan
                         : tracePhase(writer, step, *phase.graph, phaseTrack,
                                      phase.graph->name, phase.times.makespan);
    tracePlan(writer, step, *phase.graph->graph, phase.phase->plan, phase.work,
              phase.times, ofHosts);
    step.begin = end;
    step.begin =
        tracePhase(writer, step, *phase.graph, gradientTrack,
                   "gradients go home", phase.switches.gradientSeconds);
  }
  return step.begin;
}

} // namespace dyna
