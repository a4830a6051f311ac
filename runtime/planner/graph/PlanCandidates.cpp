//===- PlanCandidates.cpp - Tries candidate plans of a step ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/graph/PlanCandidates.h"

#include "runtime/base/text/Text.h"
#include "runtime/plan/graph/ProgramBlocks.h"
#include "runtime/plan/program/Bundles.h"
#include "runtime/plan/program/SegmentLoad.h"
#include "runtime/planner/divide/ChooseSlices.h"
#include "runtime/planner/divide/CutClock.h"
#include "runtime/planner/divide/CutMiniBatch.h"
#include "runtime/planner/divide/FindSlices.h"
#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/estimate/StageMemory.h"
#include "runtime/planner/graph/ChooseRecompute.h"
#include "runtime/planner/order/MakespanWithin.h"
#include "runtime/sim/PlanTimes.h"

#include <algorithm>
#include <numeric>
#include <optional>

namespace dyna {

static Status checkSlices(const Model &model, const PlanOptions &options) {
  if (!options.slices.any())
    return Status::ok();
  DYNA_RETURN_IF_ERROR(options.slices.check(options.maxTokensPerMicroBatch,
                                            options.mostTokens()));
  return checkSliceable(model, options.batching);
}

Status checkOptions(const Model &model, int ranks, const PlanOptions &options) {
  if (options.recompute.size() != 1 &&
      options.recompute.size() != static_cast<size_t>(model.layers()))
    return Status::invalidArgument(
        formatText("recompute modes for %d layers, but the model has %d",
                   options.recompute.size(), model.layers()));
  if (options.maxTokensPerMicroBatch <= 0 ||
      options.mostTokens() > maxMicroBatchTokens)
    return Status::invalidArgument(formatText(
        "micro-batches of %d tokens: expects 1 to %d",
        options.maxTokensPerMicroBatch > 0 ? options.mostTokens()
                                           : options.maxTokensPerMicroBatch,
        maxMicroBatchTokens));
  if (options.inFlight <= 0)
    return Status::invalidArgument(formatText(
        "%d micro-batches in flight: expects at least 1", options.inFlight));
  if (!options.dynamicLimits.empty() &&
      options.dynamicLimits.size() != static_cast<size_t>(ranks))
    return Status::invalidArgument(formatText("memory limits of %d ranks, but "
                                              "the strategy has %d",
                                              options.dynamicLimits.size(),
                                              ranks));
  return checkSlices(model, options);
}

PlanOptions withMode(PlanOptions options, plan::Recompute mode) {
  options.chooseRecompute = false;
  options.recompute = {mode};
  return options;
}

/// Writes, simulates and places one candidate. Returns ResourceExhausted if it does not
/// fit, or if it takes `atMost` seconds or more. Placing takes far longer than
/// simulating, so slower plans are not placed if that can be told before.
static Status tryCandidate(const PlanWriter &writer,
                           const PlanCandidate &candidate, bool trains,
                           bool isTimed, double atMost, TriedPlan &tried) {
  const bool isPlaced = trains && goesByMemory(candidate.choice);
  if (isPlaced)
    DYNA_RETURN_IF_ERROR(
        writer.writeWithin(tried.plan, candidate.choice, atMost));
  else
    DYNA_RETURN_IF_ERROR(
        writer.writeEstimated(tried.plan, candidate.choice, trains, {}));
  if (isTimed) {
    DYNA_ASSIGN_OR_RETURN(PlanTimes times,
                          timePlan(writer.graph(), tried.plan, writer.costs()));
    tried.seconds = times.makespan;
    if (tried.seconds >= atMost)
      return Status::resourceExhausted("another plan is shorter");
  }
  return isPlaced ? Status::ok() : writer.place(tried.plan, candidate.choice);
}

void addTraining(const PlanWriter &writer, const PlanOptions &options, int cut,
                 std::vector<PlanCandidate> &table) {
  auto add = [&](PlanChoice choice) {
    const bool isOther = choice.schedule != options.schedule;
    table.push_back({std::move(choice), cut, /*round=*/0, isOther});
  };
  for (PlanChoice &choice : withSimpleOrders(writer, options))
    add(std::move(choice));
  if (!options.choosesModes())
    return;
  for (const PlanChoice &choice : withSimpleOrders(writer, options))
    add(withMode(choice, plan::RECOMPUTE_NONE));
  for (plan::Recompute mode : {plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
    add(withMode(options, mode));
}

StatusOr<TriedPlan> tryAll(const PlanWriter &writer,
                           const std::vector<plan::Plan> &cuts,
                           const std::vector<PlanCandidate> &table,
                           bool trains) {
  std::optional<TriedPlan> best;
  Status failed;
  for (size_t i = 0; i < table.size(); ++i) {
    const PlanCandidate &candidate = table[i];
    const bool isNewRound = i > 0 && candidate.round != table[i - 1].round;
    if (isNewRound && best)
      break;
    const auto ofRound = std::count_if(table.begin(), table.end(),
                                       [&](const PlanCandidate &other) {
                                         return other.round == candidate.round;
                                       });
    TriedPlan tried{cuts[candidate.cut]};
    Status status = tryCandidate(
        writer, candidate, trains, /*isTimed=*/ofRound > 1,
        /*atMost=*/best ? best->seconds : PlanWriter::never, tried);
    if (status.code() == StatusCode::ResourceExhausted) {
      failed = status;
      continue;
    }
    DYNA_RETURN_IF_ERROR(status);
    if (candidate.isFallback)
      tried.plan.fallback = ruleOf(candidate.choice.schedule).name;
    best = std::move(tried);
  }
  if (!best)
    return failed;
  return *std::move(best);
}

namespace {

/// Adds the candidates of later rounds.
void addFallbacks(const PlanWriter &writer, const PlanOptions &options,
                  bool trains, std::vector<PlanCandidate> &table) {
  if (trains && writer.graph().stages() > 1 && !options.dynamicLimits.empty() &&
      options.schedule != Schedule::Sequential &&
      options.schedule != Schedule::Adaptive) {
    PlanChoice adaptive = options;
    adaptive.schedule = Schedule::Adaptive;
    table.push_back({std::move(adaptive), 0, /*round=*/1, true});
  }
  if (options.schedule != Schedule::Sequential || options.chooseRecompute)
    table.push_back({lastResort(options), 0, /*round=*/2, true});
}

/// Returns the micro-batches of the replica whose stages have most to do.
std::vector<int> busiestReplica(const PlanWriter &writer,
                                const plan::Plan &plan,
                                const PlanChoice &choice, int &replica) {
  const ExecutableGraph &graph = writer.graph();
  const auto own = microBatchesOfReplicas(plan, graph.replicas());
  double most = -1;
  for (int r = 0; r < graph.replicas(); ++r) {
    const PipelineProblem problem =
        estimateStages(graph, writer.costs(), plan, own[r], choice);
    double seconds = 0;
    for (const auto *table : {&problem.forward, &problem.backward})
      for (const std::vector<double> &stage : *table)
        seconds = std::accumulate(stage.begin(), stage.end(), seconds);
    if (seconds <= most)
      continue;
    most = seconds;
    replica = r;
  }
  return own[replica];
}

/// Returns the seconds of the busiest replica's pipeline; infinity if nothing fits.
StatusOr<double> estimatePipeline(const PlanWriter &writer,
                                  const plan::Plan &plan,
                                  const PlanOptions &options) {
  const ExecutableGraph &graph = writer.graph();
  PlanChoice choice = options;
  int replica = 0;
  const std::vector<int> own = busiestReplica(writer, plan, choice, replica);
  const std::vector<int64_t> beside(graph.ranks(), 0);
  if (options.choosesModes()) {
    choice.microBatchRecompute.resize(plan.microBatches.size());
    auto seconds = chooseRecompute(graph, writer.costs(), plan, replica, own,
                                   beside, choice);
    if (seconds.status().code() == StatusCode::ResourceExhausted)
      return PlanWriter::never;
    return seconds;
  }
  PipelineProblem problem =
      estimateStages(graph, writer.costs(), plan, own, choice);
  if (!choice.dynamicLimits.empty())
    return timeWithin(std::move(problem), graph, plan, own, replica, choice,
                      beside)
        .second;
  problem.inFlight = choice.inFlight;
  const double seconds = makespanWithin(problem, choice.schedule);
  // If the schedule does not fit, use an order that respects memory.
  return seconds < PlanWriter::never
             ? seconds
             : makespanWithin(problem, Schedule::Adaptive);
}

/// Estimates a pipeline whose modes may be chosen. `isPressed` is set if the limits
/// matter. Modes are chosen only if they may lead to less than `atMost` seconds, which
/// takes long.
StatusOr<double> estimateWithin(const PlanWriter &writer,
                                const plan::Plan &plan,
                                const PlanOptions &options, double atMost,
                                bool &isPressed) {
  constexpr double pressed = 1.001;
  if (!options.choosesModes())
    return estimatePipeline(writer, plan, options);
  const PlanOptions fixed = withMode(options, plan::RECOMPUTE_NONE);
  PlanOptions wide = fixed;
  wide.dynamicLimits.clear();
  DYNA_ASSIGN_OR_RETURN(double least, estimatePipeline(writer, plan, wide));
  DYNA_ASSIGN_OR_RETURN(double seconds, estimatePipeline(writer, plan, fixed));
  if (seconds <= pressed * least || least >= atMost)
    return seconds;
  isPressed = true;
  return estimatePipeline(writer, plan, options);
}

/// Returns the seconds of the fastest pipeline for whole micro-batches and the slices
/// that plans compare with them.
StatusOr<double> estimateSliced(const PlanWriter &writer, plan::Plan plan,
                                const PlanOptions &options, bool &isPressed) {
  double shortest = PlanWriter::never;
  DYNA_ASSIGN_OR_RETURN(auto cuts,
                        fasterSlices(writer.graph(), writer.costs(),
                                     plan.microBatches, options,
                                     /*trains=*/true, mostComparedSlices));
  cuts.push_back({std::move(plan.microBatches), {}});
  for (SlicedCut &cut : cuts) {
    plan.microBatches = std::move(cut.microBatches);
    DYNA_ASSIGN_OR_RETURN(double seconds, estimateWithin(writer, plan, options,
                                                         shortest, isPressed));
    shortest = std::min(shortest, seconds);
  }
  return shortest;
}

} // namespace

StatusOr<plan::Plan> cutBy(const PlanWriter &writer,
                           const std::vector<int64_t> &lengths,
                           int64_t targetTokens, const PlanOptions &options,
                           bool trains) {
  DYNA_RETURN_IF_ERROR(
      checkOptions(writer.graph().model(), writer.graph().ranks(), options));
  plan::Plan plan = writer.empty();
  plan.targetTokens = targetTokens;
  DYNA_ASSIGN_OR_RETURN(
      plan.microBatches,
      cutMiniBatch(writer.graph(), writer.costs(), lengths, options, trains));
  return plan;
}

StatusOr<double> estimateStep(const PlanWriter &writer,
                              const std::vector<int64_t> &lengths,
                              const PlanOptions &options) {
  const bool comparesSlices = options.slices.policy == SlicePolicy::Auto;
  double shortest = PlanWriter::never;
  Status failed;
  bool isCut = false, isPressed = !comparesSlices;
  for (plan::Recompute mode : allModes) {
    PlanOptions uniform = options;
    if (comparesSlices)
      uniform.slices = {};
    if (options.choosesModes())
      uniform.recompute = {mode};
    auto cut = cutBy(writer, lengths, /*targetTokens=*/0, uniform, true);
    if (cut.isOk()) {
      isCut = true;
      DYNA_ASSIGN_OR_RETURN(
          double seconds, comparesSlices
                              ? estimateSliced(writer, *cut, uniform, isPressed)
                              : estimatePipeline(writer, *cut, uniform));
      shortest = std::min(shortest, seconds);
    } else if (cut.status().code() == StatusCode::ResourceExhausted) {
      failed = cut.status();
      isPressed = true;
    } else {
      return cut.status();
    }
    // Other modes only help if some micro-batches do not fit the memory.
    if (!options.choosesModes() || !isPressed)
      break;
  }
  return isCut ? StatusOr<double>(shortest) : failed;
}

std::vector<PlanChoice> withSimpleOrders(const PlanWriter &writer,
                                         const PlanOptions &options) {
  std::vector<PlanChoice> all = {options};
  if (ruleOf(options.schedule).adapts && writer.graph().stages() > 1)
    for (Schedule simple :
         {Schedule::Cyclic, Schedule::OneForwardOneBackward}) {
      all.push_back(options);
      all.back().schedule = simple;
    }
  return all;
}

PlanChoice lastResort(PlanOptions options) {
  options.schedule = Schedule::Sequential;
  if (options.chooseRecompute) {
    options.chooseRecompute = false;
    options.recompute = {plan::RECOMPUTE_FULL};
  }
  return options;
}

StatusOr<plan::Plan> completePlan(const PlanWriter &writer,
                                  const plan::Plan &cut,
                                  const PlanOptions &options, bool trains) {
  std::vector<PlanCandidate> table;
  if (trains)
    addTraining(writer, options, /*cut=*/0, table);
  else
    table.push_back({options});
  addFallbacks(writer, options, trains, table);
  DYNA_ASSIGN_OR_RETURN(TriedPlan best, tryAll(writer, {cut}, table, trains));
  return std::move(best.plan);
}

} // namespace dyna
