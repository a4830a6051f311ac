//===- ChoosePlan.cpp - Of the plans that fit, the shortest -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The part of `Planner` that chooses: cuts, orders and recomputation. Whether a
// plan fits, its placed blocks tell; how long it takes, its programs, played.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/Planner.h"

#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/graph/ChooseRecompute.h"
#include "runtime/sim/PlanTimes.h"

#include <algorithm>
#include <limits>

namespace dyna {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();

bool sameMicroBatches(const plan::Plan &a, const plan::Plan &b) {
  auto sameSegment = [](const plan::Segment &x, const plan::Segment &y) {
    return x.sample == y.sample && x.length == y.length;
  };
  auto same = [&](const plan::MicroBatch &x, const plan::MicroBatch &y) {
    return x.replica == y.replica &&
           std::equal(x.segments.begin(), x.segments.end(), y.segments.begin(),
                      y.segments.end(), sameSegment);
  };
  return std::equal(a.microBatches.begin(), a.microBatches.end(),
                    b.microBatches.begin(), b.microBatches.end(), same);
}

/// Whether modes are to be chosen, and there is a reason to.
bool choosesModes(const PlanOptions &options) {
  return options.chooseRecompute && !options.dynamicLimits.empty();
}

/// Whether a training step's order or modes follow from the limits, so that only
/// placing it tells which.
bool goesByMemory(const PlanOptions &options) {
  return !options.dynamicLimits.empty() &&
         (ruleOf(options.schedule).adapts || options.chooseRecompute);
}

/// The same mode everywhere, instead of one for each stage and micro-batch.
PlanOptions withMode(PlanOptions options, plan::Recompute mode) {
  options.chooseRecompute = false;
  options.recompute = {mode};
  return options;
}

constexpr plan::Recompute modes[] = {
    plan::RECOMPUTE_NONE, plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL};

} // namespace

std::vector<PlanOptions>
Planner::withSimpleOrders(const PlanOptions &options) const {
  std::vector<PlanOptions> all = {options};
  if (ruleOf(options.schedule).adapts && graph_.stages() > 1)
    for (Schedule simple :
         {Schedule::Cyclic, Schedule::OneForwardOneBackward}) {
      all.push_back(options);
      all.back().schedule = simple;
    }
  return all;
}

PlanOptions Planner::lastResort(PlanOptions options) {
  options.schedule = Schedule::Sequential;
  if (options.chooseRecompute) {
    options.chooseRecompute = false;
    options.recompute = {plan::RECOMPUTE_FULL};
  }
  return options;
}

StatusOr<double> Planner::chooseModes(const plan::Plan &plan,
                                      const std::vector<int64_t> &beside,
                                      PlanOptions &options) const {
  options.microBatchRecompute.resize(plan.microBatches.size());
  auto own = microBatchesOfReplicas(plan, graph_.replicas());
  double slowest = 0;
  for (int replica = 0; replica < graph_.replicas(); ++replica) {
    DYNA_ASSIGN_OR_RETURN(double seconds,
                          dyna::chooseRecompute(graph_, costs_, plan, replica,
                                                own[replica], beside, options));
    slowest = std::max(slowest, seconds);
  }
  return slowest;
}

/// Returns the tokens of the largest micro-batch of several samples.
static int64_t largestJoined(const plan::Plan &plan) {
  int64_t largest = 0;
  for (const plan::MicroBatch &microBatch : plan.microBatches)
    if (microBatch.segments.size() > 1)
      largest = std::max(largest, loadOf(microBatch).queries);
  return largest;
}

/// Whether anything is computed again.
static bool recomputes(const plan::Plan &plan) {
  for (const plan::RankProgram &rank : plan.ranks)
    for (const plan::Instruction &i : rank.instructions)
      if (i.recompute != plan::RECOMPUTE_NONE)
        return true;
  return false;
}

/// Whether ranks mostly wait where a pipeline has enough to do: fewer micro-batches
/// are in flight than there are stages.
static bool isWaiting(const PlanTimes &times) {
  constexpr double enough = 0.75;
  double busiest = 0;
  for (const RankTimes &rank : times.ranks)
    busiest = std::max(busiest, rank.busy);
  return busiest < enough * times.makespan;
}

StatusOr<Planner::Cut> Planner::cutFor(const std::vector<int64_t> &lengths,
                                       int64_t targetTokens,
                                       const PlanOptions &options,
                                       bool trains) const {
  DYNA_ASSIGN_OR_RETURN(Cut best,
                        cutOnce(lengths, targetTokens, options, trains));
  const int64_t manyInFlight = int64_t(4) * graph_.stages() * graph_.replicas();
  if (!trains || graph_.stages() == 1 || options.dynamicLimits.empty() ||
      !ruleOf(options.batching).takesShares ||
      best.plan.microBatchCount() < manyInFlight)
    return best;
  // What lies beside micro-batches, no estimate of what has room knows: where that
  // leaves too few in flight, or more is computed again than a cut expected, smaller
  // ones may be faster.
  constexpr int tries = 3;
  PlanOptions smaller = options;
  smaller.longestSample = options.mostTokens();
  Cut cut = best;
  double shortest = never;
  for (int turn = 0; turn < tries; ++turn) {
    if (!cut.isFilled) {
      auto filled = complete(cut.plan, smaller, trains);
      if (filled.status().code() == StatusCode::ResourceExhausted)
        return best;
      DYNA_RETURN_IF_ERROR(filled.status());
      cut = {*std::move(filled), /*isFilled=*/true};
    }
    DYNA_ASSIGN_OR_RETURN(PlanTimes times, timePlan(graph_, cut.plan, costs_));
    if (times.makespan >= shortest)
      return best;
    shortest = times.makespan;
    best = cut;
    smaller.maxTokensPerMicroBatch = largestJoined(cut.plan) / 2;
    // Modes take long to choose: smaller ones are tried once.
    const bool isPressed =
        isWaiting(times) ||
        (turn == 0 && choosesModes(options) && recomputes(cut.plan));
    if (!isPressed || turn + 1 == tries || smaller.maxTokensPerMicroBatch == 0)
      return best;
    auto next = cutOnce(lengths, targetTokens, smaller, trains);
    if (next.status().code() == StatusCode::ResourceExhausted)
      return best;
    DYNA_RETURN_IF_ERROR(next.status());
    cut = *std::move(next);
  }
  return best;
}

StatusOr<Planner::Cut> Planner::cutOnce(const std::vector<int64_t> &lengths,
                                        int64_t targetTokens,
                                        const PlanOptions &options,
                                        bool trains) const {
  Cut best;
  if (!trains || !choosesModes(options)) {
    DYNA_ASSIGN_OR_RETURN(best.plan,
                          start(lengths, targetTokens, options, trains));
    return best;
  }
  std::optional<plan::Plan> chosen;
  std::vector<std::pair<plan::Recompute, plan::Plan>> cuts;
  Status failed;
  double shortest = never;
  for (plan::Recompute mode : modes) {
    PlanOptions uniform = options;
    uniform.recompute = {mode};
    auto cut = start(lengths, targetTokens, uniform, trains);
    // A sample that keeps too much in this mode may fit in another.
    if (cut.status().code() == StatusCode::ResourceExhausted) {
      failed = cut.status();
      continue;
    }
    DYNA_RETURN_IF_ERROR(cut.status());
    cuts.emplace_back(mode, *cut);
    auto seconds =
        chooseModes(*cut, std::vector<int64_t>(graph_.ranks(), 0), uniform);
    if (seconds.isOk() && *seconds < shortest)
      shortest = *seconds;
    else if (chosen)
      continue;
    chosen = std::move(*cut);
  }
  if (!chosen)
    return failed;
  best.plan = std::move(*chosen);
  cuts.erase(std::remove_if(cuts.begin(), cuts.end(),
                            [&](const auto &cut) {
                              return sameMicroBatches(cut.second, best.plan);
                            }),
             cuts.end());
  return cuts.empty() ? best : shortestOf(best.plan, std::move(cuts), options);
}

StatusOr<Planner::Cut>
Planner::shortestOf(const plan::Plan &chosen,
                    std::vector<std::pair<plan::Recompute, plan::Plan>> cuts,
                    const PlanOptions &options) const {
  Cut best{chosen};
  plan::Plan filled = chosen;
  DYNA_ASSIGN_OR_RETURN(double shortest, fillAndPlay(filled, options));
  if (shortest < never)
    best = {std::move(filled), /*isFilled=*/true};
  for (auto &[mode, cut] : cuts) {
    DYNA_ASSIGN_OR_RETURN(double seconds,
                          fillAndPlay(cut, withMode(options, mode)));
    if (seconds < shortest) {
      shortest = seconds;
      best = {std::move(cut), /*isFilled=*/true};
    }
  }
  return best;
}

StatusOr<double> Planner::fillAndPlay(plan::Plan &plan,
                                      const PlanOptions &options) const {
  Status filled = fillFastest(plan, options);
  if (filled.code() == StatusCode::ResourceExhausted)
    return never;
  DYNA_RETURN_IF_ERROR(filled);
  DYNA_ASSIGN_OR_RETURN(PlanTimes times, timePlan(graph_, plan, costs_));
  return times.makespan;
}

Status Planner::writeWithin(plan::Plan &plan, PlanOptions options,
                            double atMost) const {
  // The further stages run ahead, the more inputs wait behind them, which no
  // estimate of what a stage keeps knows: as many as fit, as under the cyclic
  // schedule, as under 1F1B, one.
  using Behind = int; // stages
  const std::vector<int (*)(Behind)> most = {
      nullptr, [](Behind behind) { return 2 * behind + 1; },
      [](Behind behind) { return behind + 1; }, [](Behind) { return 1; }};
  const plan::Plan empty = plan;
  for (auto *mostOf : most) {
    if (mostOf && (graph_.stages() == 1 || !ruleOf(options.schedule).adapts))
      continue;
    options.mostKept.clear();
    for (int stage = 0; mostOf && stage < graph_.stages(); ++stage)
      options.mostKept.push_back(mostOf(graph_.stages() - 1 - stage));
    plan = empty;
    bool isSlower = false;
    Status written = writeWithinNumbers(plan, options, atMost, isSlower);
    if (written.code() != StatusCode::ResourceExhausted || isSlower)
      return written;
  }
  return Status::resourceExhausted("no order fits");
}

Status Planner::writeWithinNumbers(plan::Plan &plan, PlanOptions &options,
                                   double atMost, bool &isSlower) const {
  constexpr int tries = 4;
  // Inputs that wait for their stage, gradients and workspaces come beside.
  std::vector<int64_t> beside(plan.rankCount(), 0), held = beside;
  const plan::Plan empty = plan;
  for (int turn = 0; turn < tries; ++turn) {
    plan = empty;
    if (options.chooseRecompute)
      DYNA_RETURN_IF_ERROR(chooseModes(plan, beside, options).status());
    DYNA_RETURN_IF_ERROR(writeEstimated(plan, options, true, beside, &held));
    // Placing takes far longer than playing, and with less memory nothing is
    // shorter.
    if (atMost < never) {
      DYNA_ASSIGN_OR_RETURN(PlanTimes times, timePlan(graph_, plan, costs_));
      if ((isSlower = times.makespan >= atMost))
        return Status::resourceExhausted("another order is shorter");
    }
    DYNA_RETURN_IF_ERROR(placeAll(plan, graph_.replicas(), nullptr));
    bool fits = true;
    for (int rank = 0; rank < plan.rankCount(); ++rank) {
      int64_t bytes = plan.ranks[rank].dynamicBytes;
      int64_t above = bytes - options.dynamicLimits[rank];
      if (above <= 0)
        continue;
      fits = false;
      // What came beside this time, which others of these sizes have too.
      beside[rank] = std::max(beside[rank] + above, bytes - held[rank]);
    }
    if (fits)
      return Status::ok();
  }
  return Status::resourceExhausted("no order fits");
}

Status Planner::fill(plan::Plan &plan, const PlanOptions &options,
                     bool trains) const {
  if (trains && goesByMemory(options))
    return writeWithin(plan, options, never);
  DYNA_RETURN_IF_ERROR(writeEstimated(plan, options, trains, {}));
  return place(plan, options);
}

Status Planner::fillFastest(plan::Plan &plan,
                            const PlanOptions &options) const {
  std::vector<PlanOptions> candidates = withSimpleOrders(options);
  if (choosesModes(options)) {
    for (const PlanOptions &chosen : withSimpleOrders(options))
      candidates.push_back(withMode(chosen, plan::RECOMPUTE_NONE));
    for (plan::Recompute mode :
         {plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
      candidates.push_back(withMode(options, mode));
  }
  if (candidates.size() == 1)
    return fill(plan, options, /*trains=*/true);
  std::optional<plan::Plan> best;
  double shortest = never;
  Status failed;
  for (const PlanOptions &candidate : candidates) {
    plan::Plan other = plan;
    // Placing takes far longer than playing: what is slower anyway is not placed.
    const bool isPlaced = goesByMemory(candidate);
    Status status = isPlaced ? writeWithin(other, candidate, shortest)
                             : writeEstimated(other, candidate, true, {});
    double seconds = never;
    if (status.isOk()) {
      DYNA_ASSIGN_OR_RETURN(PlanTimes times, timePlan(graph_, other, costs_));
      seconds = times.makespan;
      if (best && seconds >= shortest)
        continue;
      if (!isPlaced)
        status = place(other, candidate);
    }
    if (status.code() == StatusCode::ResourceExhausted) {
      failed = status;
      continue;
    }
    DYNA_RETURN_IF_ERROR(status);
    shortest = seconds;
    best = std::move(other);
    if (candidate.schedule != options.schedule)
      best->fallback = ruleOf(candidate.schedule).name;
  }
  if (!best)
    return failed;
  plan = *std::move(best);
  return Status::ok();
}

StatusOr<plan::Plan> Planner::complete(const plan::Plan &empty,
                                       const PlanOptions &options,
                                       bool trains) const {
  std::vector<PlanOptions> attempts = {options};
  if (trains && graph_.stages() > 1 && !options.dynamicLimits.empty() &&
      options.schedule != Schedule::Sequential &&
      options.schedule != Schedule::Adaptive) {
    attempts.push_back(options);
    attempts.back().schedule = Schedule::Adaptive;
  }
  if (options.schedule != Schedule::Sequential || options.chooseRecompute)
    attempts.push_back(lastResort(options));
  Status failed;
  for (size_t i = 0; i < attempts.size(); ++i) {
    plan::Plan plan = empty;
    if (i > 0)
      plan.fallback = ruleOf(attempts[i].schedule).name;
    failed = i == 0 && trains ? fillFastest(plan, attempts[i])
                              : fill(plan, attempts[i], trains);
    if (failed.isOk())
      return plan;
    if (failed.code() != StatusCode::ResourceExhausted)
      return failed;
  }
  return failed;
}

} // namespace dyna
