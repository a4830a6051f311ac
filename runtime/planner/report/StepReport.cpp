//===- StepReport.cpp - Simulates and reports steps ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/report/StepReport.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/StateBytes.h"
#include "runtime/plan/program/InstructionTable.h"

#include <algorithm>

namespace dyna {

namespace {

bool isSwitch(const plan::Instruction &i) {
  const ExchangeKind kind = exchangeOf(i.op).kind;
  return kind == ExchangeKind::ValueSwitch ||
         kind == ExchangeKind::GradientSwitch;
}

/// Cuts the times of a step into those of its phases.
class PhaseCutter {
public:
  PhaseCutter(const PlanWork &work, const PlanTimes &times)
      : work_(work), times_(times), next_(work.ranks(), 0) {}

  /// Returns the times of the next phase, from `begin` on. The first phase begins with
  /// the step.
  PlanTimes cut(const plan::Plan &plan, double &begin) {
    const bool isFirst = phase_ == 0;
    PlanTimes own;
    own.ranks.resize(plan.rankCount());
    begin = isFirst ? 0 : times_.makespan;
    for (int rank = 0; rank < plan.rankCount() && !isFirst; ++rank)
      if (plan.ranks[rank].count() > 0)
        begin =
            std::min(begin, times_.ranks[rank].instructions[next_[rank]].start);
    for (int rank = 0; rank < plan.rankCount(); ++rank)
      cutRank(rank, plan.ranks[rank].count(), begin, own);
    for (int t : work_.transfersOf(phase_++))
      own.transfers.push_back(from(times_.transfers[t], begin));
    return own;
  }

private:
  static TaskTime from(const TaskTime &time, double begin) {
    return {time.start - begin, time.end - begin};
  }

  void cutRank(int rank, int count, double begin, PlanTimes &own) {
    RankTimes &times = own.ranks[rank];
    const PlanWork::Steps steps = work_.steps(rank);
    for (int end = next_[rank] + count; next_[rank] < end; ++next_[rank]) {
      const TaskTime &time = times_.ranks[rank].instructions[next_[rank]];
      times.instructions.push_back(from(time, begin));
      own.makespan = std::max(own.makespan, time.end - begin);
      const PlanWork::Step &step = steps[next_[rank]];
      if (step.kind == PlanWork::Step::Kind::Run) {
        times.busy += time.end - time.start;
      } else if (step.kind == PlanWork::Step::Kind::Meet) {
        const TaskTime &call = times_.transfers[work_.use(step.first)];
        times.busy += call.end - call.start;
      }
    }
  }

  const PlanWork &work_;
  const PlanTimes &times_;
  std::vector<int> next_; ///< first instruction of the next phase, by rank
  int phase_ = 0;
};

/// Adds the seconds that ranks are in instructions of switches to the phases that
/// these name.
void addSwitching(std::vector<PlayedPhase> &phases) {
  for (PlayedPhase &phase : phases)
    phase.switching.assign(phase.times.ranks.size(), 0);
  for (const PlayedPhase &phase : phases) {
    const plan::Plan &plan = phase.phase->plan;
    for (int rank = 0; rank < plan.rankCount(); ++rank)
      for (int index = 0; index < plan.ranks[rank].count(); ++index)
        if (const auto &i = plan.ranks[rank].instructions[index]; isSwitch(i)) {
          const TaskTime &time = phase.times.ranks[rank].instructions[index];
          phases[i.phase].switching[rank] += time.end - time.start;
        }
  }
}

double largestOf(const std::vector<double> &values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

} // namespace

double PlayedStep::switchSeconds() const {
  std::vector<double> sum(phases.front().switching.size());
  for (const PlayedPhase &phase : phases)
    for (size_t rank = 0; rank < sum.size(); ++rank)
      sum[rank] += phase.switching[rank];
  return largestOf(sum);
}

StatusOr<PlayedStep> playPhases(const StepPlanner &planner,
                                const VerifiedStep &step,
                                const SimulationOptions &options) {
  std::vector<PlannedPhase> planned;
  for (const VerifiedStep::Phase &phase : step.phases()) {
    const PlannedGraph &graph = planner.graph(phase.switches.graph);
    planned.push_back({graph.graph.get(), &phase.plan, &graph.planner->costs(),
                       phase.switches.values, phase.switches.gradients});
  }
  PlanWork work(planned);
  DYNA_ASSIGN_OR_RETURN(PlanTimes times, playPlan(work, options));
  PlayedStep played;
  played.makespan = times.makespan;
  played.areNamed = planner.graphs().areSeveral();
  for (const PortTime &one : times.ports)
    played.buckets.push_back({work.switches().parts[one.part].rank, one.port,
                              work.bucket(work.bucketOf(one.part)), one.bytes,
                              one.time});
  const bool isSingle = step.phaseCount() == 1;
  PhaseCutter cutter(work, times);
  for (int k = 0; k < step.phaseCount(); ++k) {
    const VerifiedStep::Phase &phase = step.phases()[k];
    double begin = 0;
    PlanTimes own = isSingle ? std::move(times) : cutter.cut(phase.plan, begin);
    played.phases.push_back(
        {&planner.graph(phase.switches.graph),
         &phase,
         planner.switchCosts(step, k),
         isSingle
             ? std::move(work)
             : PlanWork(*planned[k].graph, *planned[k].plan, *planned[k].costs),
         begin,
         std::move(own),
         {}});
  }
  addSwitching(played.phases);
  return played;
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

/// Sets the bytes of each rank while a phase computes: home's parameters, and the end of
/// the blocks in the region.
static void setPeakBytes(PlanReport &report, const PlannedGraph &home,
                         const ExecutableGraph &graph, const VerifiedStep &step,
                         int phase) {
  for (PlanReport::Stage &stage : report.stages)
    stage.peakBytes = 0;
  for (int rank = 0; rank < graph.ranks(); ++rank) {
    const int64_t bytes = persistentBytes(home.graph->rankView(rank),
                                          home.planner->costs().layerStates()) +
                          stepBytes(step.blocks(rank), phase);
    PlanReport::Stage &stage = report.stages[graph.placeOf(rank).stage];
    stage.peakBytes = std::max(stage.peakBytes, bytes);
    report.rankBytes[rank] = bytes;
  }
}

PlanReport reportStep(const StepPlanner &planner, const VerifiedStep &step,
                      const PlayedStep &played) {
  const ExecutableGraph &home = *planner.home().graph;
  PlanReport report;
  countPhases(report, home.model(), step);
  std::vector<double> busy(home.ranks());
  report.rankBytes.resize(busy.size());
  for (size_t k = 0; k < played.phases.size(); ++k) {
    const PlayedPhase &phase = played.phases[k];
    const ExecutableGraph &graph = *phase.graph->graph;
    PlanReport own =
        reportPlan(graph, phase.phase->plan, phase.graph->planner->costs(),
                   phase.work, phase.times);
    own.count(graph.model(), phase.phase->plan, phase.phase->lengths);
    if (!planner.graphs().areSeveral())
      return own;
    report.peakRate = own.peakRate;
    setPeakBytes(own, planner.home(), graph, step, static_cast<int>(k));
    own.switchSeconds = largestOf(phase.switching);
    own.switchAloneSeconds = phase.switches.seconds();
    own.switchBytes = phase.switches.bytes();
    for (size_t rank = 0; rank < busy.size(); ++rank) {
      busy[rank] += phase.times.ranks[rank].busy;
      report.rankBytes[rank] =
          std::max(report.rankBytes[rank], own.rankBytes[rank]);
    }
    report.loadBound += own.loadBound;
    report.pathBound += own.pathBound;
    report.exchange += own.exchange;
    report.recompute += own.recompute;
    report.otherSchedules += own.otherSchedules;
    report.others.insert(own.others.begin(), own.others.end());
    report.switchAloneSeconds += own.switchAloneSeconds;
    report.switchBytes += own.switchBytes;
    report.phases.emplace_back(phase.graph->name, std::move(own));
  }
  report.seconds = played.makespan;
  report.switchSeconds = played.switchSeconds();
  report.bound = *std::max_element(busy.begin(), busy.end());
  return report;
}

namespace {

/// A track that the executor has, too (runtime/executor/trace/Trace.h).
struct SpanTrack {
  int track;
  const char *name, *category, *slice;
};
const SpanTrack valueTrack = {1, "switches: values", "switch", "values come"},
                gradientTrack = {2, "switches: gradients", "switch",
                                 "gradients go home"},
                phaseTrack = {3, "phases", "phase", nullptr};

/// Writes slices that stand for many instructions of a phase.
class SpanTracer {
public:
  SpanTracer(TraceWriter &writer, const TracedStep &step,
             const PlayedStep &played)
      : writer_(writer), step_(step), played_(played) {}

  void write() {
    for (int rank = 0; rank < played_.phases.front().work.ranks(); ++rank)
      writeRank(rank);
  }

  void writePorts() {
    const char *names[kPorts] = {"network out", "network in", "node out",
                                 "node in"};
    for (const PlayedBucket &one : played_.buckets) {
      TraceArguments arguments = argumentsOf(one.bucket.phase);
      arguments.bucket = one.bucket.number;
      arguments.bytes = one.bytes;
      const int process = step_.firstProcess + one.rank;
      const std::string name =
          formatText("switch port: %s", names[static_cast<int>(one.port)]);
      writer_.slice(process, writer_.track(process, name),
                    one.bucket.ofGradients ? "gradients" : "values", "transfer",
                    step_.begin + one.time.start, step_.begin + one.time.end,
                    arguments);
    }
  }

private:
  /// Time from the first start to the last end, in seconds from the begin of
  /// the step.
  struct Span {
    TaskTime time;
    bool isSet = false;
    void add(double begin, const TaskTime &other) {
      const TaskTime own = {begin + other.start, begin + other.end};
      time = isSet ? TaskTime{std::min(time.start, own.start),
                              std::max(time.end, own.end)}
                   : own;
      isSet = true;
    }
  };

  void writeRank(int rank) {
    const size_t count = played_.phases.size();
    std::vector<Span> phases(count), values(count), gradients(count);
    for (size_t k = 0; k < count; ++k) {
      const PlayedPhase &phase = played_.phases[k];
      const auto &program = phase.phase->plan.ranks[rank].instructions;
      for (size_t index = 0; index < program.size(); ++index) {
        const TaskTime &time = phase.times.ranks[rank].instructions[index];
        const plan::Instruction &i = program[index];
        if (isSwitch(i))
          (exchangeOf(i.op).kind == ExchangeKind::ValueSwitch
               ? values
               : gradients)[i.phase]
              .add(phase.begin, time);
        else if (namesLayer(i.op))
          phases[k].add(phase.begin, time);
      }
    }
    writeSpans(rank, valueTrack, values);
    writeSpans(rank, gradientTrack, gradients);
    writeSpans(rank, phaseTrack, phases);
  }

  /// Slices of one track do not overlap: a later one begins behind an earlier one.
  void writeSpans(int rank, const SpanTrack &track,
                  const std::vector<Span> &spans) {
    const int process = step_.firstProcess + rank;
    double last = 0;
    for (size_t k = 0; k < spans.size(); ++k) {
      if (!spans[k].isSet)
        continue;
      writer_.nameTrack(process, track.track, track.name);
      const double begin = std::max(last, spans[k].time.start);
      last = std::max(begin, spans[k].time.end);
      writer_.slice(process, track.track,
                    track.slice ? track.slice : played_.phases[k].graph->name,
                    track.category, step_.begin + begin, step_.begin + last,
                    argumentsOf(static_cast<int>(k)));
    }
  }

  TraceArguments argumentsOf(int phase) const {
    TraceArguments arguments;
    arguments.step = step_.step;
    arguments.phase = phase;
    arguments.strategy = played_.phases[phase].graph->name.c_str();
    return arguments;
  }

  TraceWriter &writer_;
  const TracedStep &step_;
  const PlayedStep &played_;
};

} // namespace

double traceStep(TraceWriter &writer, TracedStep step, const PlayedStep &played,
                 bool ofHosts) {
  if (played.areNamed) {
    SpanTracer spans(writer, step, played);
    spans.write();
    spans.writePorts();
  }
  const double begin = step.begin;
  for (size_t k = 0; k < played.phases.size(); ++k) {
    const PlayedPhase &phase = played.phases[k];
    TracedStep own = step;
    own.phase = played.areNamed ? static_cast<int>(k) : -1;
    own.begin = begin + phase.begin;
    tracePlan(writer, own, *phase.graph->graph, phase.phase->plan, phase.work,
              phase.times, ofHosts);
  }
  return begin + played.makespan;
}

} // namespace dyna
