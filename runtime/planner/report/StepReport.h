//===- StepReport.h - Steps of several graphs, played -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What a step of several graphs takes: its phases are played one after another,
// each between its switches, none of which is hidden there. So it is what a step
// takes at most, as far as costs are right: a run starts switches inside of last
// backwards and waits for them layer by layer.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STEPREPORT_H
#define DYNA_RUNTIME_PLANNER_STEPREPORT_H

#include "runtime/planner/report/PlanReport.h"
#include "runtime/planner/step/StepPlanner.h"
#include "runtime/sim/PlanTrace.h"

#include <vector>

namespace dyna {

/// A phase by itself. Graph and plan are those of the planner and the step it was
/// played of, which must outlive it.
struct PlayedPhase {
  int number; ///< in the step; -1: the run has one graph
  const PlannedGraph *graph;
  const VerifiedStep::Phase *phase;
  PhaseSwitchCosts switches;
  PlanWork work;
  PlanTimes times;
};

StatusOr<std::vector<PlayedPhase>> playPhases(const StepPlanner &planner,
                                              const VerifiedStep &step,
                                              const SimulationOptions &options);

/// Returns the report of one step. If the run has several graphs, `phases` of it has a
/// report of each phase by its strategy. The peaks of a phase are those of all that a
/// rank has then. If there is one graph, the step has the stages of its only phase.
PlanReport reportStep(const StepPlanner &planner, const VerifiedStep &step,
                      const std::vector<PlayedPhase> &phases);

/// Sets numbers and sizes of micro-batches, samples and tokens of all phases, and the
/// flops of `model` for them.
void countPhases(PlanReport &report, const Model &model,
                 const VerifiedStep &step);

/// Writes it as the executor writes a step that ran, switches on tracks of their
/// own. `step` says where it begins; `ofHosts` as for tracePlan. Returns where the
/// step ends, which is where a step behind it begins.
double traceStep(TraceWriter &writer, TracedStep step,
                 const std::vector<PlayedPhase> &phases, bool ofHosts);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPREPORT_H
