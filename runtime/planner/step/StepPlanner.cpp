//===- StepPlanner.cpp - Plans of steps of several graphs -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/StepPlanner.h"

#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/write/JoinPhases.h"

namespace dyna {
namespace {

GraphEstimates estimatesOf(const std::vector<const PlannedGraph *> &graphs,
                           const Orchestration &orchestration) {
  std::vector<PhaseEstimate> phases;
  for (const PlannedGraph *graph : graphs)
    phases.emplace_back(*graph->graph, graph->planner->costs(), graph->options);
  return {std::move(phases), orchestration.order, orchestration.seconds};
}

int64_t bytesSent(const GraphSwitch &made) {
  int64_t bytes = 0;
  for (const SwitchBucket &bucket : made.plan.buckets)
    for (const SwitchTransfer &transfer : bucket.transfers)
      if (transfer.from != transfer.to)
        bytes +=
            transfer.box.volume() * made.tensors[transfer.tensor].elementBytes;
  return bytes;
}

} // namespace

StepPlanner::StepPlanner(std::vector<const PlannedGraph *> graphs,
                         LengthRanges ranges, Orchestration orchestration,
                         bool merges, std::vector<int64_t> regionBytes)
    : graphs_(std::move(graphs)), ranges_(std::move(ranges)),
      orchestration_(std::move(orchestration)), merges_(merges),
      regionBytes_(std::move(regionBytes)),
      estimates_(estimatesOf(graphs_, orchestration_)) {}

StatusOr<std::vector<std::vector<int>>>
StepPlanner::assign(const std::vector<int64_t> &lengths, bool trains) const {
  DYNA_ASSIGN_OR_RETURN(Assignment assignment,
                        trains && merges_
                            ? assignSamples(lengths, ranges_, estimates_)
                            : assignByRange(lengths, ranges_));
  return std::move(assignment.samples);
}

StatusOr<plan::Plan> StepPlanner::planPhase(int range,
                                            const std::vector<int64_t> &lengths,
                                            int64_t targets, bool trains,
                                            bool update) const {
  const PlannedGraph &own = graph(range);
  const bool isHome = range == orchestration_.home();
  PlanOptions options = own.options;
  options.switched = !isHome;
  options.update = isHome && update;
  if (!trains)
    return own.planner->evaluation(lengths, targets, options);
  if (isHome && update && lengths.empty()) {
    // Nothing reads the values of this phase: none need be gathered.
    DYNA_ASSIGN_OR_RETURN(plan::Plan plan, own.planner->update());
    plan.targetTokens = targets;
    return plan;
  }
  return own.planner->training(lengths, targets, options);
}

StatusOr<VerifiedStep> StepPlanner::plan(const std::vector<int64_t> &lengths,
                                         int64_t targets, bool trains,
                                         bool update) const {
  DYNA_ASSIGN_OR_RETURN(auto samples, assign(lengths, trains));
  plan::StepPlan step;
  for (int range : orchestration_.order) {
    if (samples[range].empty() && range != orchestration_.home())
      continue;
    plan::Phase &next = step.phases.emplace_back();
    next.samples.assign(samples[range].begin(), samples[range].end());
    std::vector<int64_t> own;
    for (int64_t sample : next.samples)
      own.push_back(lengths[sample]);
    DYNA_ASSIGN_OR_RETURN(next.plan,
                          planPhase(range, own, targets, trains, update));
  }
  DYNA_RETURN_IF_ERROR(joinPhases(switches(), trains, step));
  DYNA_RETURN_IF_ERROR(placePhases(switches(), regionBytes_, step));
  return VerifiedStep::prove(switches(), std::move(step), lengths, targets,
                             regionBytes_, /*failedAt=*/nullptr,
                             {graph(orchestration_.home()).options.norms,
                              /*mustUpdate=*/trains && update});
}

double StepPlanner::switchSeconds(const VerifiedStep &step) const {
  std::vector<int> phases;
  for (const VerifiedStep::Phase &phase : step.phases())
    phases.push_back(phase.switches.graph);
  return orchestration_.switchSeconds(phases);
}

PhaseSwitchCosts StepPlanner::switchCosts(const VerifiedStep &step,
                                          int phase) const {
  const SwitchTable::PhaseSwitches &own = step.phases()[phase].switches;
  if (own.graph == orchestration_.home())
    return {};
  const int before = own.before < 0 ? orchestration_.home() : own.before;
  return {orchestration_.seconds.values[before][own.graph],
          orchestration_.seconds.gradients[own.graph], bytesSent(*own.values),
          bytesSent(*own.gradients)};
}

} // namespace dyna
