//===- StepPlanner.cpp - Plans the steps of a run -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/StepPlanner.h"

#include "runtime/plan/program/PlanFile.h"
#include "runtime/planner/place/PlacePhases.h"
#include "runtime/planner/write/JoinPhases.h"

namespace dyna {
namespace {

GraphEstimates estimatesOf(const StepGraphs &graphs) {
  std::vector<PhaseEstimate> phases;
  for (const PlannedGraph &graph : graphs.graphs())
    phases.emplace_back(*graph.graph, graph.planner->costs(), graph.options);
  return {std::move(phases), graphs.orchestration().order,
          graphs.orchestration().seconds};
}

} // namespace

StepPlanner::StepPlanner(const StepGraphs &graphs, bool merges,
                         std::vector<int64_t> regionBytes)
    : graphs_(graphs), regionBytes_(std::move(regionBytes)) {
  if (merges && graphs.areSeveral())
    estimates_.emplace(estimatesOf(graphs));
}

StatusOr<std::vector<std::vector<int>>>
StepPlanner::assign(const std::vector<int64_t> &lengths, bool trains) const {
  DYNA_ASSIGN_OR_RETURN(
      Assignment assignment,
      trains && estimates_
          ? assignSamples(lengths, graphs_.ranges(), *estimates_)
          : assignByRange(lengths, graphs_.ranges()));
  return std::move(assignment.samples);
}

UpdateRules StepPlanner::rules(bool mustUpdate) const {
  return {/*needsNorms=*/home().options.norms, mustUpdate};
}

StatusOr<plan::Plan> StepPlanner::planPhase(int range,
                                            const std::vector<int64_t> &lengths,
                                            int64_t targets, bool trains,
                                            bool update) const {
  const PlannedGraph &own = graph(range);
  const bool isHome = graphs_.isHome(own);
  PlanOptions options = own.options;
  options.switched = !isHome;
  options.update = isHome && update;
  if (!trains)
    return own.planner->evaluation(lengths, targets, options);
  if (isHome && update && lengths.empty()) {
    // No instruction reads the values of this phase, so none are gathered.
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
  for (int range : graphs_.orchestration().order) {
    if (samples[range].empty() && !graphs_.isHome(graph(range)))
      continue;
    plan::Phase &next = step.phases.emplace_back();
    next.samples.assign(samples[range].begin(), samples[range].end());
    std::vector<int64_t> own;
    for (int64_t sample : next.samples)
      own.push_back(lengths[sample]);
    DYNA_ASSIGN_OR_RETURN(next.plan,
                          planPhase(range, own, targets, trains, update));
  }
  DYNA_RETURN_IF_ERROR(joinPhases(graphs_.switches(), trains, step));
  DYNA_RETURN_IF_ERROR(placePhases(graphs_.switches(), regionBytes_, step));
  return verify(std::move(step), lengths, targets,
                /*mustUpdate=*/trains && update);
}

StatusOr<VerifiedStep> StepPlanner::planUpdate() const {
  DYNA_ASSIGN_OR_RETURN(plan::Plan plan, home().planner->update());
  return verify(stepOf(std::move(plan)), /*lengths=*/{}, /*targets=*/0,
                /*mustUpdate=*/true);
}

StatusOr<VerifiedStep> StepPlanner::verify(plan::StepPlan step,
                                           const std::vector<int64_t> &lengths,
                                           int64_t targets,
                                           bool mustUpdate) const {
  return VerifiedStep::prove(graphs_.switches(), std::move(step), lengths,
                             targets, regionBytes_, /*failedAt=*/nullptr,
                             rules(mustUpdate));
}

StatusOr<VerifiedStep>
StepPlanner::verifyRanks(plan::StepPlan step, const std::vector<int> &ranks,
                         const std::vector<int64_t> &lengths, int64_t targets,
                         bool mustUpdate) const {
  return VerifiedStep::proveRanks(graphs_.switches(), std::move(step), ranks,
                                  lengths, targets, regionBytes_,
                                  rules(mustUpdate));
}

double StepPlanner::switchSeconds(const VerifiedStep &step) const {
  std::vector<int> phases;
  for (const VerifiedStep::Phase &phase : step.phases())
    phases.push_back(phase.switches.graph);
  return graphs_.orchestration().switchSeconds(phases);
}

PhaseSwitchCosts StepPlanner::switchCosts(const VerifiedStep &step,
                                          int phase) const {
  const SwitchTable::PhaseSwitches &own = step.phases()[phase].switches;
  const Orchestration &made = graphs_.orchestration();
  if (own.graph == made.home())
    return {};
  const int before = own.before < 0 ? made.home() : own.before;
  return {made.seconds.values[before][own.graph],
          made.seconds.gradients[own.graph], own.values->sentBytes(),
          own.gradients->sentBytes()};
}

} // namespace dyna
