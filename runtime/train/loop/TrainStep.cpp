//===- TrainStep.cpp - Runs one step of the training loop -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Launches and finishes the steps of a trainer, and reports and counts their
// results.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/text/JsonWriter.h"
#include "runtime/train/loop/Trainer.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/text/Json.h"
#include "runtime/base/text/Text.h"
#include "runtime/train/flags/LearningRate.h"
#include "runtime/train/plans/PlanSource.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace dyna {

//===----------------------------------------------------------------------===//
// In flight
//===----------------------------------------------------------------------===//

size_t Trainer::stepsAhead() const {
  const bool isLate =
      session_.device().runsLate() && session_.home().graph->ranks() == 1;
  return isLate ? kStepsInFlight - 1 : 0;
}

Status Trainer::launchStep(int64_t step, PlannedStep planned, double waited) {
  LaunchedStep launched;
  launched.step = step;
  launched.waited = waited;
  launched.begin = Clock::now();
  const TraceRecorder *trace =
      session_.traces.empty() ? nullptr : session_.traces[0].get();
  launched.traceBegin = trace ? trace->now() : 0;
  // The process of the first rank traces the predictions of all ranks.
  launched.isPredicted = trace && !trace->isFull() && session_.hasCosts() &&
                         session_.ranks->firstRank() == 0;
  launched.isAhead = !launched_.empty();
  launched.planned = std::move(planned);
  // Store it before the launch, because ranks use its plan and data until the
  // end.
  LaunchedStep &last = launched_.emplace_back(std::move(launched));
  Status status;
  if (stepsAhead() == 0 || !last.planned.update)
    status = runPlan(step, last.planned, last.result.emplace());
  else
    status = session_.ranks->launch(*last.planned.plan, last.planned.batch,
                                    scalarsOf(step));
  if (status.isOk())
    return last.result ? finishSteps() : status;
  launched_.pop_back();
  // The device may have failed in an earlier step, so that step's error comes
  // first.
  DYNA_RETURN_IF_ERROR(finishSteps());
  return status;
}

Status Trainer::finishSteps(size_t count) {
  while (launched_.size() > count)
    DYNA_RETURN_IF_ERROR(finishStep());
  return Status::ok();
}

void Trainer::dropSteps() {
  for (; !launched_.empty(); launched_.pop_front()) {
    StepResult unused;
    // The next use of the device reports a failure again.
    (void)session_.ranks->finish(unused);
  }
}

Status Trainer::tracePredicted(const LaunchedStep &launched) {
  const PlannedStep &planned = launched.planned;
  if (!launched.isPredicted || !planned.plan->isWhole())
    return Status::ok();
  // Slices of one track must not overlap, even if a step took less than
  // predicted.
  const double begin = std::max(launched.traceBegin, predictedEnd_);
  DYNA_ASSIGN_OR_RETURN(predictedEnd_,
                        tracePrediction(session_, *planned.plan, launched.step,
                                        begin, predicted_));
  return Status::ok();
}

static bool hasNorms(const VerifiedStep &step) {
  for (const VerifiedStep::Phase &phase : step.phases())
    for (const plan::RankProgram &program : phase.plan.ranks)
      for (const plan::Instruction &i : program.instructions)
        if (i.op == plan::Instruction::GRAD_NORM)
          return true;
  return false;
}

/// Describes what each phase of a step was given.
static std::vector<PhaseMetrics> describePhases(const StepGraphs &graphs,
                                                const VerifiedStep &step) {
  std::vector<PhaseMetrics> phases;
  for (const VerifiedStep::Phase &phase : step.phases()) {
    PhaseMetrics &own = phases.emplace_back();
    own.strategy = graphs.graph(phase.switches.graph).name;
    own.microBatches = phase.plan.microBatchCount();
    for (int64_t length : phase.lengths) {
      ++own.samples;
      own.tokens += length;
      own.merged +=
          graphs.ranges().rangeOf(length) != phase.switches.graph ? 1 : 0;
    }
  }
  return phases;
}

/// Returns the mean seconds of a micro-batch, by layer. Shards of a layer take the same
/// time.
static std::vector<double> loadsOf(const StepGraphs &graphs,
                                   const StepResult &result) {
  const ExecutableGraph &home = *graphs.home().graph;
  const size_t microBatches = result.microBatchLosses.size();
  if (graphs.areSeveral() || microBatches == 0)
    return {};
  std::vector<double> loads = result.layerSeconds;
  for (double &seconds : loads)
    seconds /= static_cast<double>(home.strategy().tp) *
               static_cast<double>(microBatches);
  return loads;
}

StepMetrics Trainer::metricsOf(const LaunchedStep &launched,
                               const StepResult &result, double seconds,
                               double waited) const {
  const PlannedStep &planned = launched.planned;
  const MiniBatch &batch = planned.batch;
  StepMetrics metrics;
  metrics.step = launched.step + 1;
  metrics.loss = result.lossSum / static_cast<double>(batch.targets);
  metrics.losses =
      nameLosses(*session_.model, result.layerLosses, batch.targets);
  metrics.tokens = batch.tokens;
  metrics.targets = batch.targets;
  metrics.seconds = waited + seconds;
  if (session_.device().runsLate())
    metrics.launchedAhead = launched.isAhead;
  metrics.predictedSeconds = planned.predictedSeconds;
  metrics.coreWaitSeconds = result.coreWaitSeconds;
  metrics.gflops = result.flops / metrics.seconds / 1e9;
  metrics.learningRate = learningRate(options_, launched.step);
  metrics.gradientNorm = result.gradientNorm;
  metrics.hasGradientNorm = !options_.noGradientNorm || hasNorms(*planned.plan);
  for (const RankUse &use : result.uses)
    metrics.peakBytes += use.peakBytes;
  metrics.microBatches = static_cast<int64_t>(result.microBatchLosses.size());
  if (session_.home().graph->stages() > 1)
    metrics.layerSeconds = loadsOf(*session_.graphs, result);
  metrics.measured =
      reportMeasured(session_, *planned.plan, seconds, result.uses);
  metrics.predicted = planned.predicted;
  metrics.planSeconds = planned.planSeconds;
  metrics.planWaitSeconds = waited;
  for (const VerifiedStep::Phase &phase : planned.plan->phases())
    metrics.addPlan(phase.plan, session_.home().options.chooseRecompute);
  if (session_.hasRanges())
    metrics.phases = describePhases(*session_.graphs, *planned.plan);
  metrics.switchSeconds = result.switchSeconds;
  metrics.switchBytes = result.switchBytes;
  pruning_.addTo(metrics);
  return metrics;
}

void Trainer::measureLoad(const LaunchedStep &launched,
                          const StepMetrics &metrics,
                          const StepResult &result) {
  const bool packs = moves_.hasGoal();
  if (!rebalance_.isOn() && !packs)
    return;
  StepLoad load;
  load.layers = metrics.layerSeconds;
  load.seconds = metrics.seconds - metrics.planWaitSeconds;
  load.tokens = metrics.tokens;
  load.microBatches = metrics.microBatches;
  load.planSeconds = metrics.planSeconds;
  load.work = launched.planned.plan->phases().front().plan.microBatches;
  if (packs) {
    StepLoad all = load;
    all.layers = loadsOf(*session_.graphs, result);
    packing_.stepEnded(std::move(all));
  }
  if (rebalance_.isOn())
    rebalance_.stepEnded(launched.step, std::move(load));
}

Status Trainer::takeNonfinite(const StepMetrics &metrics) {
  // Neither this step nor a later one was updated, so the trained state can be
  // saved.
  if (skipped_ >= options_.skipNonfinite) {
    dropSteps();
    return saveAndFail(Status::invalidArgument(formatText(
        "step %d: the %s is not finite: training diverged, use a lower --lr, "
        "a longer --warmup or %s, or pass over single steps with "
        "--skip-nonfinite N",
        metrics.step, std::isfinite(metrics.loss) ? "gradient" : "loss",
        options_.clip > 0 ? "a lower --clip" : "--clip 1")));
  }
  ++skipped_;
  DYNA_RETURN_IF_ERROR(session_.ranks->clearPrunedScores());
  if (session_.writesFiles())
    progress_.note(formatText(
        "warning: step %d is skipped, its loss or gradient is not finite "
        "(%d of %d)",
        metrics.step, skipped_, options_.skipNonfinite));
  return Status::ok();
}

Status Trainer::finishStep() {
  StepResult result;
  if (std::optional<StepResult> &done = launched_.front().result) {
    result = std::move(*done);
  } else {
    DYNA_RETURN_IF_ERROR(session_.ranks->finish(result));
    if (!result.isDropped)
      counts_.add(*session_.ranks);
  }
  const LaunchedStep launched = std::move(launched_.front());
  launched_.pop_front();
  if (result.isDropped) {
    summary_.hasDroppedStep = true;
    dropSteps();
    return Status::ok();
  }
  // If the step before ended later than this launch, the device began this step
  // then.
  const bool follows = finished_ > launched.begin;
  const Clock::time_point begin = follows ? finished_ : launched.begin;
  finished_ = Clock::now();
  DYNA_RETURN_IF_ERROR(tracePredicted(launched));
  const StepMetrics metrics =
      metricsOf(launched, result,
                std::chrono::duration<double>(finished_ - begin).count(),
                follows ? 0 : launched.waited);
  checkLogged(metrics_.write(metrics));
  measureLoad(launched, metrics, result);
  const bool isFinite =
      std::isfinite(metrics.loss) && std::isfinite(metrics.gradientNorm);
  if (isFinite)
    freezing_.sawNorms(result.layerNorms);
  else
    DYNA_RETURN_IF_ERROR(takeNonfinite(metrics));
  const PlannedStep &planned = launched.planned;
  cursor_ = planned.cursor;
  countStep(metrics, result, isFinite);
  summary_.addPadding(planned, ruleOf(session_.home().options.batching).pads,
                      options_.chosenMicroBatch);
  return Status::ok();
}

void PhaseSummary::add(const StepMetrics &metrics) {
  for (const PhaseMetrics &phase : metrics.phases) {
    Strategy &own = strategies[phase.strategy];
    own.samples += phase.samples;
    own.merged += phase.merged;
    own.steps += phase.samples > 0 ? 1 : 0;
  }
  phases += static_cast<int64_t>(metrics.phases.size());
  switchSeconds += metrics.switchSeconds;
  switchBytes += metrics.switchBytes;
}

void Trainer::countStep(const StepMetrics &metrics, const StepResult &result,
                        bool isFinite) {
  if (isFinite) {
    if (!hasLoss_)
      summary_.firstLoss = metrics.loss;
    hasLoss_ = true;
    summary_.lastLosses.push_back(metrics.loss);
    if (summary_.lastLosses.size() > TrainSummary::averagedLosses)
      summary_.lastLosses.pop_front();
  }
  ++summary_.steps;
  summary_.otherSchedules += metrics.fallback.empty() ? 0 : 1;
  summary_.slicedSteps += metrics.slices.samples > 0 ? 1 : 0;
  summary_.slices.samples += metrics.slices.samples;
  summary_.slices.slices += metrics.slices.slices;
  summary_.tokens += metrics.tokens;
  summary_.seconds += metrics.seconds;
  summary_.phases.add(metrics);
  summary_.flops += result.flops;
  summary_.predictions.add(metrics.predictedSeconds, metrics.seconds);
  summary_.coreWaitSeconds += metrics.coreWaitSeconds;
  if (!options_.gradNorms.empty())
    losses_.push_back(metrics.loss);
  progress_.update(metrics);
}

StepScalars Trainer::scalarsOf(int64_t step) const {
  StepScalars scalars;
  scalars.step = step;
  scalars.optimizer = optimizerAt(options_, step);
  scalars.clip = options_.clip;
  scalars.skipsLeft = std::max<int64_t>(options_.skipNonfinite - skipped_, 0);
  scalars.addsScores = pruning_.addsScores(step);
  scalars.scoresPruned = pruning_.scoresPruned(step);
  return scalars;
}

Status Trainer::runPlan(int64_t step, const PlannedStep &planned,
                        StepResult &result) {
  bool looks = !options_.gradNorms.empty() && summary_.steps == 0;
  const StepScalars scalars = scalarsOf(step);
  DYNA_RETURN_IF_ERROR(
      session_.ranks->run(*planned.plan, planned.batch, scalars, result));
  if (!result.isDropped)
    counts_.add(*session_.ranks);
  if (!looks || result.isDropped)
    return Status::ok();
  DYNA_RETURN_IF_ERROR(collectGradientNorms());
  DYNA_ASSIGN_OR_RETURN(VerifiedStep update, session_.planner->planUpdate());
  StepResult updated;
  DYNA_RETURN_IF_ERROR(
      session_.ranks->run(update, MiniBatch(), scalars, updated));
  result.gradientNorm = updated.gradientNorm;
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// Gradient norms
//===----------------------------------------------------------------------===//

template <typename Element>
static StatusOr<double> gradientNorm(RankTeam &ranks, int p) {
  std::vector<Element> values;
  double sum = 0;
  for (RowRange rows : ranks.rowChunks(p, ParameterPart::Gradient)) {
    values.resize(rows.count() * ranks.model().rowElements(p));
    DYNA_RETURN_IF_ERROR(
        ranks.readRows(p, ParameterPart::Gradient, rows, values.data()));
    for (Element value : values)
      sum += static_cast<double>(value) * static_cast<double>(value);
  }
  return std::sqrt(sum);
}

Status Trainer::collectGradientNorms() {
  bool wide = session_.model->masterType() == plan::F64;
  for (int p = 0; p < session_.model->parameters(); ++p) {
    if (session_.model->isFrozen(p)) {
      gradientNorms_.push_back(0);
      continue;
    }
    DYNA_ASSIGN_OR_RETURN(double norm,
                          wide ? gradientNorm<double>(*session_.ranks, p)
                               : gradientNorm<float>(*session_.ranks, p));
    gradientNorms_.push_back(norm);
  }
  return Status::ok();
}

Status Trainer::writeGradientNorms() const {
  JsonArray losses;
  for (double loss : losses_)
    losses.add(loss);
  JsonObject norms;
  for (size_t p = 0; p < gradientNorms_.size(); ++p)
    if (!session_.model->isFrozen(static_cast<int>(p)))
      norms.add(session_.model->parameter(static_cast<int>(p)).name(),
                gradientNorms_[p]);
  return replaceFile(
      options_.gradNorms,
      JsonObject()
              .add("first_step", summary_.firstStep)
              .add("losses", losses)
              .add("gradient_norms", JsonText::raw(norms.text("\n  ")))
              .text("\n ") +
          "\n");
}

} // namespace dyna
