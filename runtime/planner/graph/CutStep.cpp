//===- CutStep.cpp - Chooses micro-batches by complete plans --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/CutStep.h"

#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/graph/CompareSlices.h"
#include "runtime/sim/PlanTimes.h"

#include <algorithm>

namespace dyna {
namespace {

/// Cuts once for each mode: more recomputation leaves room for larger micro-batches. The
/// first cut is the one with the shortest estimate. `modesOf` gets the modes.
StatusOr<std::vector<plan::Plan>>
cutForModes(const PlanWriter &writer, const std::vector<int64_t> &lengths,
            int64_t targetTokens, const PlanOptions &options,
            std::vector<plan::Recompute> &modesOf) {
  std::vector<plan::Plan> cuts;
  size_t chosen = 0;
  bool isChosen = false;
  double shortest = PlanWriter::never;
  Status failed;
  for (plan::Recompute mode : allModes) {
    PlanChoice uniform = options;
    uniform.recompute = {mode};
    auto cut = cutBy(writer, lengths, targetTokens, uniform, true);
    // A sample that keeps too much in this mode may fit in another.
    if (cut.status().code() == StatusCode::ResourceExhausted) {
      failed = cut.status();
      continue;
    }
    DYNA_RETURN_IF_ERROR(cut.status());
    cuts.push_back(*std::move(cut));
    modesOf.push_back(mode);
    auto seconds = writer.chooseModes(
        cuts.back(), std::vector<int64_t>(writer.graph().ranks(), 0), uniform);
    if (seconds.isOk() && *seconds < shortest)
      shortest = *seconds;
    else if (isChosen)
      continue;
    chosen = cuts.size() - 1;
    isChosen = true;
  }
  if (!isChosen)
    return failed;
  std::vector<plan::Plan> all = {cuts[chosen]};
  std::vector<plan::Recompute> ofAll = {modesOf[chosen]};
  for (size_t i = 0; i < cuts.size(); ++i)
    if (!(cuts[i].microBatches == all[0].microBatches)) {
      all.push_back(std::move(cuts[i]));
      ofAll.push_back(modesOf[i]);
    }
  modesOf = std::move(ofAll);
  return all;
}

/// Cuts micro-batches of one size. With chosen recomputation, cuts for each mode are
/// compared as complete plans, unless all are equal.
StatusOr<PlanCut> cutWhole(const PlanWriter &writer,
                           const std::vector<int64_t> &lengths,
                           int64_t targetTokens, const PlanOptions &options,
                           bool trains) {
  if (!trains || !options.choosesModes()) {
    DYNA_ASSIGN_OR_RETURN(
        plan::Plan plan, cutBy(writer, lengths, targetTokens, options, trains));
    return PlanCut{std::move(plan)};
  }
  std::vector<plan::Recompute> modesOf;
  DYNA_ASSIGN_OR_RETURN(
      std::vector<plan::Plan> cuts,
      cutForModes(writer, lengths, targetTokens, options, modesOf));
  if (cuts.size() == 1)
    return PlanCut{std::move(cuts[0])};
  std::vector<PlanCandidate> table;
  addTraining(writer, options, /*cut=*/0, table);
  for (size_t i = 1; i < cuts.size(); ++i)
    addTraining(writer, withMode(options, modesOf[i]), static_cast<int>(i),
                table);
  auto best = tryAll(writer, cuts, table, /*trains=*/true);
  if (best.status().code() == StatusCode::ResourceExhausted)
    return PlanCut{std::move(cuts[0])};
  DYNA_RETURN_IF_ERROR(best.status());
  return PlanCut{std::move(best->plan), /*isComplete=*/true};
}

/// Returns the tokens of the largest micro-batch of several samples.
int64_t largestJoined(const plan::Plan &plan) {
  int64_t largest = 0;
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    if (microBatch.segments.size() > 1)
      largest = std::max(largest, loadOf(microBatch).queries);
  return largest;
}

/// Returns true if anything is computed again.
bool recomputes(const plan::Plan &plan) {
  for (const plan::RankProgram &rank : plan.ranks)
    for (const plan::Instruction &i : rank.instructions)
      if (i.recompute != plan::RECOMPUTE_NONE)
        return true;
  return false;
}

/// Returns true if ranks mostly wait: fewer micro-batches are in flight than there are
/// stages.
bool isWaiting(const PlanTimes &times) {
  constexpr double enough = 0.75;
  double busiest = 0;
  for (const RankTimes &rank : times.ranks)
    busiest = std::max(busiest, rank.busy);
  return busiest < enough * times.makespan;
}

/// Cuts a step without choosing slices. Micro-batches become smaller if stages mostly
/// wait, and smaller ones are faster.
StatusOr<PlanCut> cutSizes(const PlanWriter &writer,
                           const std::vector<int64_t> &lengths,
                           int64_t targetTokens, const PlanOptions &options,
                           bool trains) {
  const ExecutableGraph &graph = writer.graph();
  DYNA_ASSIGN_OR_RETURN(
      PlanCut best, cutWhole(writer, lengths, targetTokens, options, trains));
  const int64_t manyInFlight = int64_t(4) * graph.stages() * graph.replicas();
  if (!trains || graph.stages() == 1 || options.dynamicLimits.empty() ||
      !ruleOf(options.batching).takesShares ||
      best.plan.microBatchCount() < manyInFlight)
    return best;
  // No estimate of what has room knows what lies beside micro-batches. If that leaves
  // too few in flight, or more is computed again than a cut expected, smaller ones may
  // be faster.
  constexpr int tries = 3;
  PlanOptions smaller = options;
  smaller.longestSample = options.mostTokens();
  PlanCut cut = best;
  double shortest = PlanWriter::never;
  for (int turn = 0; turn < tries; ++turn) {
    if (!cut.isComplete) {
      auto complete = completePlan(writer, cut.plan, smaller, trains);
      if (complete.status().code() == StatusCode::ResourceExhausted)
        return best;
      DYNA_RETURN_IF_ERROR(complete.status());
      cut = {*std::move(complete), /*isComplete=*/true};
    }
    DYNA_ASSIGN_OR_RETURN(PlanTimes times,
                          timePlan(graph, cut.plan, writer.costs()));
    if (times.makespan >= shortest)
      return best;
    shortest = times.makespan;
    best = cut;
    smaller.maxTokensPerMicroBatch = largestJoined(cut.plan) / 2;
    smaller.slices = options.slices.within(smaller.maxTokensPerMicroBatch,
                                           smaller.mostTokens());
    // Choosing modes takes long, so try smaller micro-batches only once.
    const bool isPressed =
        isWaiting(times) ||
        (turn == 0 && options.choosesModes() && recomputes(cut.plan));
    if (!isPressed || turn + 1 == tries || smaller.maxTokensPerMicroBatch == 0)
      return best;
    auto next = cutWhole(writer, lengths, targetTokens, smaller, trains);
    if (next.status().code() == StatusCode::ResourceExhausted)
      return best;
    DYNA_RETURN_IF_ERROR(next.status());
    cut = *std::move(next);
  }
  return best;
}

} // namespace

StatusOr<PlanCut> cutStep(const PlanWriter &writer,
                          const std::vector<int64_t> &lengths,
                          int64_t targetTokens, const PlanOptions &options,
                          bool trains) {
  if (!trains || options.slices.policy != SlicePolicy::Auto)
    return cutSizes(writer, lengths, targetTokens, options, trains);
  DYNA_RETURN_IF_ERROR(
      checkOptions(writer.graph().model(), writer.graph().ranks(), options));
  PlanOptions whole = options;
  whole.slices = {};
  DYNA_ASSIGN_OR_RETURN(PlanCut cut,
                        cutSizes(writer, lengths, targetTokens, whole, trains));
  return compareSlices(writer, std::move(cut), whole);
}

} // namespace dyna
