//===- RangedGraphs.cpp - The graphs of --ranges --------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/RangedGraphs.h"

#include "runtime/executor/Staging.h"

namespace dyna {

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

std::vector<PhaseMetrics>
RangedGraphs::describePhases(const VerifiedStep &step) const {
  std::vector<PhaseMetrics> phases;
  for (const VerifiedStep::Phase &phase : step.phases()) {
    PhaseMetrics &own = phases.emplace_back();
    own.strategy = planner_.graph(phase.switches.graph).name;
    own.microBatches = phase.plan.plan().microBatchCount();
    for (int64_t length : phase.plan.lengths()) {
      ++own.samples;
      own.tokens += length;
      own.merged +=
          planner_.ranges().rangeOf(length) != phase.switches.graph ? 1 : 0;
    }
  }
  return phases;
}

StatusOr<PlannedPhases> RangedGraphs::plan(const MiniBatch &batch, bool trains,
                                           bool update) const {
  DYNA_ASSIGN_OR_RETURN(
      VerifiedStep step,
      planner_.plan(batch.lengths(), countTargets(batch), trains, update));
  return withBatches(std::move(step), batch);
}

StatusOr<PlannedPhases> RangedGraphs::prove(plan::StepPlan step,
                                            const MiniBatch &batch,
                                            const UpdateRules &updates) const {
  DYNA_ASSIGN_OR_RETURN(VerifiedStep proven,
                        VerifiedStep::prove(planner_.switches(),
                                            std::move(step), batch.lengths(),
                                            countTargets(batch), regionBytes(),
                                            /*failedAt=*/nullptr, updates));
  return withBatches(std::move(proven), batch);
}

StatusOr<PlannedPhases>
RangedGraphs::proveRanks(plan::StepPlan step, const std::vector<int> &ranks,
                         const MiniBatch &batch,
                         const UpdateRules &updates) const {
  DYNA_ASSIGN_OR_RETURN(
      VerifiedStep proven,
      VerifiedStep::proveRanks(planner_.switches(), std::move(step), ranks,
                               batch.lengths(), countTargets(batch),
                               regionBytes(), updates));
  return withBatches(std::move(proven), batch);
}

} // namespace dyna
