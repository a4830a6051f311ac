//===- CompareSlices.cpp - Compares slices with whole samples -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/CompareSlices.h"

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/divide/FindSlices.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/order/PipelineBounds.h"
#include "runtime/sim/PlanTimes.h"

#include <algorithm>
#include <optional>
#include <utility>

namespace dyna {
namespace {

/// A plan with slices, written before its blocks are placed.
struct SlicedCandidate {
  plan::Plan cut;
  PlanChoice choice;
  WrittenPlan first;
  size_t number = 0; ///< in the order of the candidates
};

/// Returns the choices with which a cut into slices is planned. Slices have one
/// schedule each: an adaptive schedule tries simple orders itself.
std::vector<PlanChoice> choicesOf(const PlanOptions &options,
                                  const SlicedCut &cut, int layers) {
  std::vector<PlanChoice> choices = {options};
  // Stages change modes from this start.
  for (plan::Recompute mode : cut.modes)
    choices[0].microBatchRecompute.push_back(RecomputeModes(layers, mode));
  if (options.choosesModes() && cut.modes.empty())
    for (plan::Recompute mode :
         {plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE,
          plan::RECOMPUTE_FULL})
      choices.push_back(withMode(options, mode));
  return choices;
}

/// Returns the candidates that may fit, the shortest first. `cuts` gets those that are cut
/// without modes.
StatusOr<std::vector<SlicedCandidate>>
candidatesOf(const PlanWriter &writer, const PlanCut &whole,
             const PlanOptions &options, std::vector<plan::Plan> &cuts) {
  DYNA_ASSIGN_OR_RETURN(auto faster,
                        fasterSlices(writer.graph(), writer.costs(),
                                     whole.plan.microBatches, options,
                                     /*trains=*/true, mostComparedSlices));
  const int layers = writer.graph().model().layers();
  std::vector<SlicedCandidate> all;
  for (SlicedCut &sliced : faster) {
    plan::Plan cut = writer.empty();
    cut.targetTokens = whole.plan.targetTokens;
    cut.microBatches = std::move(sliced.microBatches);
    if (sliced.modes.empty())
      cuts.push_back(cut);
    for (PlanChoice &choice : choicesOf(options, sliced, layers)) {
      auto first = writer.writeFirst(cut, choice);
      if (first.status().code() == StatusCode::ResourceExhausted)
        continue;
      DYNA_RETURN_IF_ERROR(first.status());
      all.push_back({cut, std::move(choice), *std::move(first), all.size()});
    }
  }
  std::sort(all.begin(), all.end(),
            [](const SlicedCandidate &a, const SlicedCandidate &b) {
              return std::pair(a.first.seconds, a.number) <
                     std::pair(b.first.seconds, b.number);
            });
  return all;
}

/// Places a candidate, and writes it again if it does not fit. Returns ResourceExhausted
/// as `writeWithin` does.
StatusOr<TriedPlan> complete(const PlanWriter &writer, SlicedCandidate one,
                             double atMost) {
  TriedPlan tried;
  if (!goesByMemory(one.choice)) {
    tried = {std::move(one.first.plan), one.first.seconds};
    DYNA_RETURN_IF_ERROR(writer.place(tried.plan, one.choice));
    return std::move(tried);
  }
  tried.plan = std::move(one.cut);
  DYNA_RETURN_IF_ERROR(
      writer.writeWithin(tried.plan, one.choice, atMost, &one.first));
  DYNA_ASSIGN_OR_RETURN(PlanTimes times,
                        timePlan(writer.graph(), tried.plan, writer.costs()));
  tried.seconds = times.makespan;
  return std::move(tried);
}

/// Returns seconds that no plan of these micro-batches is below, in any order.
double boundOf(const PlanWriter &writer, const plan::Plan &plan,
               const PlanOptions &options) {
  const PlanOptions least = options.choosesModes()
                                ? withMode(options, plan::RECOMPUTE_NONE)
                                : options;
  double bound = 0;
  for (const std::vector<int> &own :
       microBatchesOfReplicas(plan, writer.graph().replicas())) {
    const PipelineProblem problem =
        estimateStages(writer.graph(), writer.costs(), plan, own, least);
    bound = std::max(bound, boundPipeline(problem).seconds());
  }
  return bound;
}

/// Completes a plan with all schedules that it may fall back to, and simulates it. Returns
/// ResourceExhausted if none fits.
StatusOr<TriedPlan> completeAnyhow(const PlanWriter &writer,
                                   const plan::Plan &cut,
                                   const PlanOptions &options) {
  TriedPlan tried;
  DYNA_ASSIGN_OR_RETURN(tried.plan,
                        completePlan(writer, cut, options, /*trains=*/true));
  DYNA_ASSIGN_OR_RETURN(PlanTimes times,
                        timePlan(writer.graph(), tried.plan, writer.costs()));
  tried.seconds = times.makespan;
  return std::move(tried);
}

/// Returns the shortest plan if no slices fit the schedule. If whole micro-batches do not
/// either, slices may still be faster under the schedule that both fall back to.
StatusOr<PlanCut> fallBack(const PlanWriter &writer, PlanCut whole,
                           const std::vector<plan::Plan> &cuts,
                           const PlanOptions &options) {
  if (cuts.empty())
    return whole;
  TriedPlan best;
  if (!whole.isComplete) {
    auto complete = completePlan(writer, whole.plan, options, /*trains=*/true);
    if (complete.isOk())
      whole = {*std::move(complete), /*isComplete=*/true};
    else if (complete.status().code() != StatusCode::ResourceExhausted)
      return complete.status();
  }
  if (whole.isComplete) {
    if (whole.plan.fallback.empty())
      return whole;
    DYNA_ASSIGN_OR_RETURN(PlanTimes times,
                          timePlan(writer.graph(), whole.plan, writer.costs()));
    best = {whole.plan, times.makespan};
  }
  for (const plan::Plan &cut : cuts) {
    auto tried = completeAnyhow(writer, cut, options);
    if (tried.isOk() && tried->seconds < best.seconds)
      best = *std::move(tried);
    else if (!tried.isOk() &&
             tried.status().code() != StatusCode::ResourceExhausted)
      return tried.status();
  }
  if (best.seconds == PlanWriter::never)
    return whole;
  return PlanCut{std::move(best.plan), /*isComplete=*/true};
}

} // namespace

StatusOr<PlanCut> compareSlices(const PlanWriter &writer, PlanCut whole,
                                const PlanOptions &options) {
  std::vector<plan::Plan> cuts;
  DYNA_ASSIGN_OR_RETURN(auto candidates,
                        candidatesOf(writer, whole, options, cuts));
  std::optional<TriedPlan> best;
  for (SlicedCandidate &one : candidates) {
    if (best && one.first.seconds >= best->seconds)
      break;
    auto tried = complete(writer, std::move(one),
                          best ? best->seconds : PlanWriter::never);
    if (tried.status().code() == StatusCode::ResourceExhausted)
      continue;
    DYNA_RETURN_IF_ERROR(tried.status());
    if (!best || tried->seconds < best->seconds)
      best = *std::move(tried);
  }
  if (!best)
    return fallBack(writer, std::move(whole), cuts, options);
  if (best->seconds > boundOf(writer, whole.plan, options)) {
    if (!whole.isComplete) {
      auto complete =
          completePlan(writer, whole.plan, options, /*trains=*/true);
      if (complete.status().code() != StatusCode::ResourceExhausted) {
        DYNA_RETURN_IF_ERROR(complete.status());
        whole = {*std::move(complete), /*isComplete=*/true};
      }
    }
    if (whole.isComplete) {
      DYNA_ASSIGN_OR_RETURN(
          PlanTimes times,
          timePlan(writer.graph(), whole.plan, writer.costs()));
      if (times.makespan <= best->seconds)
        return whole;
    }
  }
  return PlanCut{std::move(best->plan), /*isComplete=*/true};
}

} // namespace dyna
