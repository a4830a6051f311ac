//===- StepReport.h - Simulates and reports steps ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A step of several graphs is simulated as a whole. On each rank its phases run
// one after another, and switches move while ranks compute (PlanTimes.h). A
// rank may be in a later phase than another rank.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STEPREPORT_H
#define DYNA_RUNTIME_PLANNER_STEPREPORT_H

#include "runtime/planner/report/PlanReport.h"
#include "runtime/planner/step/StepPlanner.h"
#include "runtime/sim/PlanTrace.h"

#include <vector>

namespace dyna {

/// A phase of a simulated step. The planner and the step must outlive it.
struct PlayedPhase {
  const PlannedGraph *graph;
  const VerifiedStep::Phase *phase;
  /// Bytes of its switches, and their durations if nothing else happens.
  PhaseSwitchCosts switches;
  PlanWork work; ///< its plan alone; switches take no time.
  /// Seconds from the begin of the step to the first instruction of the phase on any
  /// rank; 0 for the first phase.
  double begin = 0;
  /// Times of its instructions, from `begin` on. The makespan is the time until the
  /// last rank has ended the phase. RankTimes::copying is known for a single phase only.
  PlanTimes times;
  /// Seconds of each rank in instructions of the switches of this phase.
  std::vector<double> switching;
};

/// The time in which a port of a rank moved a bucket.
struct PlayedBucket {
  int rank;
  Port port;
  PlannedBucket bucket;
  int64_t bytes;
  TaskTime time; ///< from the begin of the step
};

struct PlayedStep {
  std::vector<PlayedPhase> phases;
  double makespan = 0;
  std::vector<PlayedBucket> buckets; ///< empty for hosts
  /// Phases are named by their strategies: the run has several graphs.
  bool areNamed = false;

  /// Returns the seconds of the rank that is longest in instructions of switches.
  double switchSeconds() const;
};

StatusOr<PlayedStep> playPhases(const StepPlanner &planner,
                                const VerifiedStep &step,
                                const SimulationOptions &options);

/// Returns the report of one step. If the run has several graphs, `phases` of it has a
/// report of each phase by its strategy. The peaks of a phase count all that a rank
/// holds during the phase, and the seconds of phases may overlap. If there is one
/// graph, the step has the stages of its only phase.
PlanReport reportStep(const StepPlanner &planner, const VerifiedStep &step,
                      const PlayedStep &played);

/// Sets numbers and sizes of micro-batches, samples and tokens of all phases, and the
/// flops of `model` for them.
void countPhases(PlanReport &report, const Model &model,
                 const VerifiedStep &step);

/// Writes a step in the form that the executor uses for a step that ran.
/// Switches have tracks of their own, and on devices so have the ports that
/// move them. `step` says where the step begins; `ofHosts` as for tracePlan.
/// Returns the end of the step, which is the begin of a step after it.
double traceStep(TraceWriter &writer, TracedStep step, const PlayedStep &played,
                 bool ofHosts);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPREPORT_H
