//===- RangedGraphs.cpp - The graphs of --ranges --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/RangedGraphs.h"

#include "runtime/executor/Staging.h"
#include "runtime/planner/JoinPhases.h"
#include "runtime/planner/PlacePhases.h"

#include <algorithm>

namespace dyna {
namespace {

/// Phases by the costs of their planners, switches as orchestrated.
class RunEstimates : public StepEstimates {
public:
  RunEstimates(const std::vector<const RunGraph *> &graphs,
               const Orchestration &orchestration)
      : orchestration_(orchestration) {
    for (const RunGraph *graph : graphs)
      phases_.emplace_back(*graph->graph, graph->planner->costs(),
                           graph->options);
  }

  double phaseSeconds(int range, const PhaseLoad &load) const override {
    return phases_[range].seconds(load);
  }

  double switchSeconds(const std::vector<int> &ranges) const override {
    std::vector<int> order;
    for (int range : orchestration_.order)
      if (std::find(ranges.begin(), ranges.end(), range) != ranges.end())
        order.push_back(range);
    return orchestration_.switchSeconds(order);
  }

private:
  const Orchestration &orchestration_;
  std::vector<PhaseEstimate> phases_;
};

} // namespace

MiniBatch takeSamples(const MiniBatch &batch,
                      const std::vector<int64_t> &samples) {
  MiniBatch taken;
  for (int64_t sample : samples) {
    taken.samples.push_back(batch.samples[sample]);
    taken.tokens += static_cast<int64_t>(batch.samples[sample].tokens.size());
  }
  taken.targets = countTargets(taken);
  return taken;
}

static PlannedPhases withBatches(VerifiedStep step, const MiniBatch &batch) {
  PlannedPhases planned = {std::move(step), {}};
  for (const VerifiedStep::Phase &phase : planned.step.phases())
    planned.batches.push_back(takeSamples(batch, phase.samples));
  return planned;
}

RangedGraphs::RangedGraphs(std::vector<const RunGraph *> graphs,
                           LengthRanges ranges, Orchestration orchestration,
                           bool merges, std::vector<int64_t> regionBytes)
    : graphs_(std::move(graphs)), ranges_(std::move(ranges)),
      orchestration_(std::move(orchestration)), merges_(merges),
      regionBytes_(std::move(regionBytes)),
      estimates_(std::make_unique<RunEstimates>(graphs_, orchestration_)) {}

double RangedGraphs::switchSeconds(const VerifiedStep &step) const {
  std::vector<int> ranges;
  for (const VerifiedStep::Phase &phase : step.phases())
    ranges.push_back(phase.switches.graph);
  return estimates_->switchSeconds(ranges);
}

std::pair<double, double> RangedGraphs::switchSeconds(const VerifiedStep &step,
                                                      int phase) const {
  const SwitchTable::PhaseSwitches &own = step.phases()[phase].switches;
  if (own.graph == orchestration_.home())
    return {0, 0};
  const int before = own.before < 0 ? orchestration_.home() : own.before;
  return {orchestration_.valueSeconds[before][own.graph],
          orchestration_.gradientSeconds[own.graph]};
}

std::vector<PhaseMetrics>
RangedGraphs::describePhases(const VerifiedStep &step) const {
  std::vector<PhaseMetrics> phases;
  for (const VerifiedStep::Phase &phase : step.phases()) {
    PhaseMetrics &own = phases.emplace_back();
    own.strategy = graph(phase.switches.graph).name;
    own.microBatches = phase.plan.plan().microBatchCount();
    for (int64_t length : phase.plan.lengths()) {
      ++own.samples;
      own.tokens += length;
      own.merged += ranges_.rangeOf(length) != phase.switches.graph ? 1 : 0;
    }
  }
  return phases;
}

StatusOr<std::vector<std::vector<int>>>
RangedGraphs::assign(const std::vector<int64_t> &lengths, bool trains) const {
  DYNA_ASSIGN_OR_RETURN(Assignment assignment,
                        trains && merges_
                            ? assignSamples(lengths, ranges_, *estimates_)
                            : assignByRange(lengths, ranges_));
  return std::move(assignment.samples);
}

StatusOr<plan::Plan>
RangedGraphs::planPhase(int range, const std::vector<int64_t> &lengths,
                        int64_t targets, bool trains, bool update) const {
  const RunGraph &own = graph(range);
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

StatusOr<PlannedPhases> RangedGraphs::plan(const MiniBatch &batch, bool trains,
                                           bool update) const {
  const std::vector<int64_t> lengths = batch.lengths();
  DYNA_ASSIGN_OR_RETURN(auto samples, assign(lengths, trains));
  const int64_t targets = countTargets(batch);
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
  return prove(std::move(step), batch);
}

StatusOr<PlannedPhases> RangedGraphs::prove(plan::StepPlan step,
                                            const MiniBatch &batch) const {
  DYNA_ASSIGN_OR_RETURN(VerifiedStep proven,
                        VerifiedStep::prove(switches(), std::move(step),
                                            batch.lengths(),
                                            countTargets(batch), regionBytes_));
  return withBatches(std::move(proven), batch);
}

StatusOr<PlannedPhases> RangedGraphs::proveRanks(plan::StepPlan step,
                                                 const std::vector<int> &ranks,
                                                 const MiniBatch &batch) const {
  DYNA_ASSIGN_OR_RETURN(VerifiedStep proven,
                        VerifiedStep::proveRanks(
                            switches(), std::move(step), ranks, batch.lengths(),
                            countTargets(batch), regionBytes_));
  return withBatches(std::move(proven), batch);
}

} // namespace dyna
