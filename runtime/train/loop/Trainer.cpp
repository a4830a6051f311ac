//===- Trainer.cpp - Runs the training loop -------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/loop/Trainer.h"

#include "runtime/base/file/Files.h"
#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/data/Padding.h"
#include "runtime/plan/graph/DescribeManifest.h"
#include "runtime/train/open/Initialize.h"
#include "runtime/train/plans/OpenPlans.h"
#include "runtime/train/session/DescribeData.h"
#include "runtime/train/session/Devices.h"
#include "runtime/train/session/Signals.h"

#include <chrono>
#include <numeric>
#include <thread>
#include <utility>

namespace dyna {

/// Longest time for which a finished step is not reported, because the next
/// plan is late.
static constexpr std::chrono::milliseconds kPlanPatience{100};

static std::string describeRun(const Session &session) {
  plan::ElementType type = session.model->manifest().compute_type();
  std::string device = session.device().describe();
  std::string products = session.device().describeBf16Products();
  if (type == plan::BF16 && !products.empty())
    device += ", bf16 products " + products;
  if (const PlannedGraph &home = session.home(); home.graph->ranks() > 1)
    device += formatText("; %d ranks, %s", home.graph->ranks(),
                         session.hasRanges()
                             ? "strategies by length, home '" + home.name + "'"
                             : describeStrategy(home.graph->strategy()));
  return formatText("%s: %d parameters, %s, %s; %s; %s of memory",
                    session.model->manifest().model(),
                    session.model->totalElements(), elementTypeName(type),
                    session.variant->name, device,
                    formatBytes(session.peakBytes()));
}

/// Returns the path of this process's file. If it has one rank of several, it
/// writes a file of its own.
static std::string pathOfRank(const Session &session, const std::string &path) {
  int rank = session.ranks->firstRank();
  return path + (rank > 0 ? formatText(".rank%d", rank) : "");
}

static std::string traceText(const Session &session,
                             const TraceWriter &predicted) {
  std::vector<const TraceRecorder *> ranks;
  for (const auto &trace : session.traces)
    ranks.push_back(trace.get());
  return TraceRecorder::toJson(ranks, session.ranks->firstRank(), predicted);
}

/// Fails if there is no room for a save beside the checkpoints that stay, which
/// are removed later.
Status Trainer::proveRoom() {
  const std::vector<int64_t> bytes =
      checkpointBytes(*session_.model, shardBytesOf(options_));
  if (options_.removeFirst)
    store_->removeFirst(bytes);
  const int64_t left = options_.steps - summary_.firstStep;
  // With --remove-first the next checkpoint may use the room of the oldest.
  const int64_t more = options_.removeFirst ? 0 : 1;
  int64_t count =
      std::max<int64_t>(options_.keep + more - store_->countOwn(), more);
  count = std::min(count, saves_.mostSaves(left));
  Status status = store_->proveRoom(bytes, count);
  if (status.isOk())
    return status;
  if (status.code() != StatusCode::ResourceExhausted)
    return Status(
        status.code(),
        formatText("--save %s: %s", store_->directory(), status.message()));
  std::string text = formatText(
      "--save %s: %d checkpoint%s of %s cannot be written: %s",
      store_->directory(), count, count == 1 ? "" : "s",
      formatBytes(std::accumulate(bytes.begin(), bytes.end(), INT64_C(0))),
      status.message());
  if (count > 1)
    text +=
        formatText("; as many are there at once with --keep %d", options_.keep);
  if (count > 1 && options_.keep > 1)
    text += options_.removeFirst ? ", a lower one needs less"
                                 : ", a lower one or --remove-first needs less";
  return Status(status.code(), text);
}

Trainer::Trainer(Session &session, const Checkpoint *loaded,
                 const ResumedRun *resumed)
    : session_(session), options_(session.options), loaded_(loaded),
      resumed_(resumed), moves_(session),
      freezing_(session,
                resumed ? resumed->state.frozen.norms : std::vector<double>()),
      rebalance_(session), packing_(session),
      reader_(session.data, session.batchOptions()),
      progress_(Progress::detect(options_.progress,
                                 options_.noProgress || !session.writesFiles()),
                resumed ? resumed->state.step : 0, options_.steps),
      saves_(*SaveSchedule::parse(options_.saveEvery)),
      pruning_(options_, *session.model,
               resumed ? resumed->state.pruned : PrunedSoFar()) {
  summary_.firstStep = resumed ? resumed->state.step : 0;
  tracedUntil_ = summary_.firstStep + options_.traceSteps;
  session_.version = resumed ? resumed->state.version : 0;
  session_.ranks->setVersion(session_.version);
  skipped_ = resumed ? resumed->state.skipped : 0;
}

Status Trainer::run() {
  // Load first, so that a wrong checkpoint does not replace files of an earlier
  // run. Otherwise open files first, so that a wrong path does not cost much
  // time.
  bool loads = resumed_ || loaded_;
  if (loads)
    DYNA_RETURN_IF_ERROR(setParameters());
  DYNA_RETURN_IF_ERROR(openFiles());
  if (!loads)
    DYNA_RETURN_IF_ERROR(setParameters());
  if (session_.writesFiles())
    describeStart();
  catchStopSignals();
  // A finished run that is resumed only evaluates at its end.
  if (summary_.firstStep < options_.steps)
    DYNA_RETURN_IF_ERROR(evaluateHeldOut(summary_.heldOutBefore, "start"));
  DYNA_RETURN_IF_ERROR(runSteps());
  return finish();
}

void Trainer::describeStart() {
  if (!options_.noProgress) {
    progress_.note(describeRun(session_));
    for (const std::string &line : describeData(session_))
      progress_.note(line);
    for (const std::string &line : describeRanges(session_))
      progress_.note(line);
  }
  for (const std::string &note : dataNotes(session_))
    progress_.note("note: " + note);
  for (const std::string &note : pruning_.describeStart(options_.steps))
    progress_.note("note: " + note);
}

/// Opens all files that will be written before the first step, so that a wrong
/// path costs no training.
Status Trainer::openFiles() {
  if (!session_.writesFiles())
    return Status::ok();
  int64_t resumedStep = resumed_ ? resumed_->state.step : -1;
  if (!options_.save.empty()) {
    DYNA_ASSIGN_OR_RETURN(
        auto store,
        CheckpointStore::open(options_.save, resumedStep, options_.keep));
    store_.emplace(std::move(store));
    if (store_->directory() != options_.save)
      progress_.note("note: --save " + options_.save +
                     " is a symbolic link: checkpoints go to " +
                     store_->directory());
    DYNA_RETURN_IF_ERROR(proveRoom());
  }
  if (!options_.metrics.empty()) {
    DYNA_ASSIGN_OR_RETURN(auto metrics,
                          MetricsFile::open(options_.metrics, resumedStep));
    metrics_ = std::move(metrics);
  }
  for (const std::string &path :
       {options_.trace, options_.gradNorms, options_.counts}) {
    if (path.empty())
      continue;
    DYNA_RETURN_IF_ERROR(OutputFile::checkReplace(path));
    if (*findOutputPlace(path) != OutputPlace::Pipe)
      continue;
    DYNA_ASSIGN_OR_RETURN(auto pipe, OutputFile::replace(path));
    pipes_.push_back(std::move(pipe));
  }
  return Status::ok();
}

Status Trainer::setParameters() {
  RankTeam &ranks = *session_.ranks;
  if (resumed_) {
    DYNA_RETURN_IF_ERROR(loadParameters(resumed_->checkpoint));
    DYNA_RETURN_IF_ERROR(loadOptimizer(resumed_->checkpoint, ranks));
    DYNA_RETURN_IF_ERROR(loadMasks(resumed_->checkpoint, ranks));
    DYNA_RETURN_IF_ERROR(loadScores(resumed_->checkpoint, ranks));
    DYNA_RETURN_IF_ERROR(ranks.chooseForms());
    DYNA_RETURN_IF_ERROR(pruning_.countUnits(ranks));
    DYNA_RETURN_IF_ERROR(seekData());
    for (const std::string &warning : session_.writesFiles()
                                          ? resumed_->warnings
                                          : std::vector<std::string>())
      progress_.note("warning: " + warning);
  } else if (loaded_) {
    for (const std::string &note : loadingNotes(*loaded_, *session_.model))
      if (session_.writesFiles())
        progress_.note("note: " + note);
    DYNA_RETURN_IF_ERROR(initializeAddedParts(
        ranks, static_cast<uint64_t>(options_.seed), session_.device().team()));
    DYNA_RETURN_IF_ERROR(loadParameters(*loaded_));
  } else {
    DYNA_RETURN_IF_ERROR(initializeParameters(
        ranks, static_cast<uint64_t>(options_.seed), session_.device().team()));
  }
  return castParameters(ranks);
}

Status Trainer::loadParameters(const Checkpoint &checkpoint) {
  std::vector<std::string> warnings;
  DYNA_RETURN_IF_ERROR(loadModel(checkpoint, *session_.ranks, warnings));
  if (session_.writesFiles())
    for (const std::string &warning : warnings)
      progress_.note("warning: " + warning);
  return Status::ok();
}

/// Returns the fingerprint of the held-out data; empty if there are none.
static std::string heldOutMark(const Session &session) {
  return session.heldOut
             ? formatText("%016x", session.heldOut->dataset().fingerprint())
             : "";
}

Status Trainer::seekData() {
  const DataCursor &cursor = resumed_->state.cursor;
  std::string then = resumed_->state.heldOut, now = heldOutMark(session_);
  if (!then.empty() && !now.empty() && then != now && session_.writesFiles())
    progress_.note("warning: the held-out documents are not those of the saved "
                   "run: their losses cannot be compared with its");
  if (const std::string &costs = resumed_->state.costs;
      !costs.empty() && costs != session_.costsMark() && session_.writesFiles())
    progress_.note("warning: the costs are not those of the saved run: plans "
                   "and predictions may be others");
  Status status = reader_.seek(cursor);
  if (status.isOk() || !options_.allowChangedData)
    return status;
  reader_.seekNextEpoch(cursor);
  if (session_.writesFiles())
    progress_.note("warning: other data, or another order, than the saved run "
                   "had: going on with epoch " +
                   std::to_string(reader_.cursor().epoch + 1));
  return Status::ok();
}

/// Handles a failure to write metrics. It must not end the training; lines that
/// are missing at the end are an error then.
void Trainer::checkLogged(const Status &written) {
  if (std::string note = metrics_.takeNote(); !note.empty())
    progress_.note("warning: " + note);
  if (written.isOk() || std::exchange(hasWarnedOfMetrics_, true))
    return;
  progress_.note("warning: " + written.message() +
                 "; training goes on, and the metrics once there is room");
}

void TrainSummary::addPadding(const PlannedStep &step, bool mayPad,
                              int64_t tokensPerMicroBatch) {
  auto sum = [](const std::vector<int64_t> &lengths) {
    return std::accumulate(lengths.begin(), lengths.end(), INT64_C(0));
  };
  int64_t taken = 0;
  for (const VerifiedStep::Phase &phase : step.plan->phases())
    for (const plan::MicroBatch &microBatch : phase.plan.microBatches)
      for (const plan::Segment &segment : microBatch.segments)
        taken += segment.length;
  // Plans from files are used as they are, with or without padding.
  const std::vector<int64_t> lengths = step.batch.lengths();
  mayPad |= taken > sum(lengths);
  pads |= mayPad;
  takenTokens += taken;
  paddedTokens +=
      mayPad ? taken : sum(paddedLengths(lengths, tokensPerMicroBatch));
}

//===----------------------------------------------------------------------===//
// Steps
//===----------------------------------------------------------------------===//

StatusOr<PlannedStep> Trainer::readStep(int64_t step) {
  PlannedStep planned;
  planned.begin = reader_.cursor();
  DYNA_ASSIGN_OR_RETURN(planned.batch, session_.readBatch(reader_));
  planned.step = step;
  planned.cursor = reader_.cursor();
  // An update clears the gradients. To print those of the first step, run its
  // update apart.
  planned.update = options_.gradNorms.empty() || step > summary_.firstStep;
  return planned;
}

StatusOr<Trainer::Agreed> Trainer::agree(int64_t step,
                                         const StatusOr<PlannedStep> &planned) {
  bool isSaveDue = !options_.save.empty() && step > summary_.firstStep &&
                   saves_.isDue(step, SaveSchedule::Clock::now());
  const int64_t asked = saveSignals();
  std::vector<bool> here = stopMarks();
  const size_t at = here.size();
  here.insert(here.end(), {isSaveDue, !planned.isOk(), asked != saveSignals_});
  DYNA_ASSIGN_OR_RETURN(auto marks, session_.ranks->any(here));
  saveSignals_ = asked;
  summary_.stoppedBy = stopSignalOf(marks);
  return Agreed{marks[at], marks[at + 1], marks[at + 2]};
}

/// Answers SIGUSR1, and saves that are due.
Status Trainer::saveIfDue(int64_t step, const Agreed &agreed) {
  const bool canSave = !options_.save.empty() && step > summary_.firstStep;
  if (agreed.isSaveAsked && !canSave && session_.writesFiles())
    progress_.note(options_.save.empty()
                       ? "note: SIGUSR1 saves nothing, as --save was not given"
                       : "note: SIGUSR1 saves nothing: no step was done since "
                         "the start");
  if (!canSave || !(agreed.isSaveDue || agreed.isSaveAsked))
    return Status::ok();
  DYNA_RETURN_IF_ERROR(saveOnTheWay(step, agreed.isSaveAsked));
  // This save also answers signals that arrived meanwhile, here or at other
  // processes.
  saveSignals_ = saveSignals();
  return Status::ok();
}

Status Trainer::openPlans(int64_t first) {
  DYNA_ASSIGN_OR_RETURN(source_, openPlanSource(session_));
  source_->startAt(first);
  auto read = [this, step = first]() mutable { return readStep(step++); };
  auto make = [this](PlannedStep &step) { return source_->plan(step); };
  plans_ = std::make_unique<PlanAhead>(
      read, make,
      PlanAhead::Options{options_.planAhead, options_.planThreads,
                         options_.steps - first, [this] { source_->stop(); }});
  return Status::ok();
}

void Trainer::closePlans() {
  plans_.reset(); // its threads use the source
  source_.reset();
}

Status Trainer::runSteps() {
  cursor_ = reader_.cursor();
  DYNA_RETURN_IF_ERROR(openPlans(summary_.firstStep));
  const Status status = runPlannedSteps();
  closePlans();
  return status;
}

Status Trainer::runPlannedSteps() {
  saves_.start(SaveSchedule::Clock::now());
  for (int64_t step = summary_.firstStep; step < options_.steps; ++step) {
    DYNA_RETURN_IF_ERROR(replaceIfWanted(step));
    if (summary_.hasDroppedStep || summary_.releasedTo > 0)
      break;
    // If the next plan is late, finish the steps in flight first, so that their
    // results are not reported late, too.
    if (!launched_.empty() && !plans_->isReady(kPlanPatience))
      DYNA_RETURN_IF_ERROR(finishSteps());
    const auto begin = Clock::now();
    StatusOr<PlannedStep> planned = plans_->next();
    const std::chrono::duration<double> waited = Clock::now() - begin;
    auto answers = agree(step, planned);
    // Other ranks may time out because this rank has no plan. Then report the
    // cause, not the timeout.
    if (!answers.isOk())
      return planned.isOk() ? answers.status() : planned.status();
    const Agreed agreed = *answers;
    if (agreed.hasFailed || agreed.isSaveDue || agreed.isSaveAsked ||
        pruning_.isDue(step))
      DYNA_RETURN_IF_ERROR(finishSteps());
    if (agreed.hasFailed)
      return saveAndFail(
          planned.isOk()
              ? Status(StatusCode::PeerFailed,
                       "the data or the plan of another process failed")
              : planned.status());
    if (summary_.stoppedBy || planned->batch.samples.empty())
      break;
    DYNA_RETURN_IF_ERROR(saveIfDue(step, agreed));
    DYNA_RETURN_IF_ERROR(pruneIfDue(step));
    DYNA_RETURN_IF_ERROR(launchStep(step, std::move(*planned), waited.count()));
    if (summary_.hasDroppedStep)
      break;
    DYNA_RETURN_IF_ERROR(timeAlgorithms(step + 1 - summary_.firstStep));
    // The trace has everything that was launched, executed or not.
    if (step + 1 >= tracedUntil_)
      for (auto &trace : session_.traces)
        trace->close();
    DYNA_RETURN_IF_ERROR(finishSteps(stepsAhead()));
    DYNA_RETURN_IF_ERROR(evaluateOnTheWay(step + 1));
    if (summary_.hasDroppedStep || summary_.stoppedBy)
      break;
  }
  DYNA_RETURN_IF_ERROR(finishSteps());
  if (summary_.hasDroppedStep) {
    // The signal may have reached another process.
    DYNA_ASSIGN_OR_RETURN(summary_.stoppedBy, agreeOnStop(*session_.ranks));
    if (summary_.stoppedBy == 0)
      return Status::internal("a step was dropped without a signal");
  }
  return Status::ok();
}

/// Prunes if it is due. A run whose weights are NaN has diverged. It ends
/// without a save, so that its earlier checkpoints stay.
Status Trainer::pruneIfDue(int64_t step) {
  if (pruning_.isDue(step)) {
    DYNA_RETURN_IF_ERROR(pruning_.prune(*session_.ranks, step));
    modelChanged();
    if (session_.writesFiles())
      progress_.note("note: --prune: " + pruning_.describeEvent());
  }
  // Products in sparse form give no gradients of pruned weights.
  if (pruning_.scoresPruned(step))
    session_.ranks->useDenseForms();
  return Status::ok();
}

/// Times new products after 1, 2, 4, 8, ... steps: often at the start and then
/// ever less often.
Status Trainer::timeAlgorithms(int64_t done) {
  if (options_.algorithms.empty() || (done & (done - 1)) != 0)
    return Status::ok();
  // Timing waits for the device and would run between the work of steps.
  DYNA_RETURN_IF_ERROR(finishSteps());
  for (Device *device : session_.devices) {
    const auto deadline = std::chrono::steady_clock::now() +
                          std::chrono::seconds(options_.timeout);
    DYNA_ASSIGN_OR_RETURN(std::string note,
                          dyna_device_kind.timeAlgorithms(*device, deadline));
    if (!note.empty() && !options_.noProgress)
      progress_.note(note);
  }
  return Status::ok();
}

//===----------------------------------------------------------------------===//
// The end
//===----------------------------------------------------------------------===//

/// Saves: all processes send the data of their ranks, and that of rank 0
/// writes. `failure` is why nothing was saved, with any text on the others; the
/// run survives it. The run does not survive the returned status.
Status Trainer::save(int64_t step, Status &failure) {
  failure = Status::ok();
  if (options_.save.empty() || savedStep_ == step)
    return Status::ok();
  RunState state;
  state.step = step;
  state.seed = options_.seed;
  state.modelHash = modelHashText(*session_.compiled);
  state.cursor = cursor_;
  state.skipped = skipped_;
  state.heldOut = heldOutMark(session_);
  state.costs = session_.costsMark();
  state.version = session_.version;
  state.pruned = pruning_.pruned();
  state.frozen = {freezing_.saved(), freezing_.savedNorms(step)};
  state.lossWeights = SavedWeights::of(*session_.compiled);
  state.arguments = runArguments(options_);
  failure =
      saveRun(store_ ? &*store_ : nullptr, *session_.ranks, state,
              shardBytesOf(options_), session_.data->dataset().endToken());
  const bool isLost = failure.code() == StatusCode::DeviceError ||
                      failure.code() == StatusCode::DeadlineExceeded;
  DYNA_ASSIGN_OR_RETURN(auto hasFailed,
                        session_.ranks->any({!failure.isOk(), isLost}));
  canSave_ = !hasFailed[1];
  if (store_)
    for (const std::string &note : store_->takeNotes())
      progress_.note("warning: " + note);
  if (hasFailed[0]) {
    saves_.failed(SaveSchedule::Clock::now());
    if (failure.isOk())
      failure = Status(StatusCode::PeerFailed,
                       "the process of rank 0 could not save");
    return Status::ok();
  }
  saves_.saved(SaveSchedule::Clock::now());
  savedStep_ = step;
  if (store_)
    summary_.savedTo =
        joinPath(store_->directory(), "step-" + std::to_string(step));
  return Status::ok();
}

static Status notSaved(int64_t step, const Status &failure) {
  return Status(failure.code(),
                formatText("nothing was saved after step %d: %s", step,
                           failure.message()));
}

/// Saves during the run. A save that fails does not end the run: it is tried
/// again soon.
Status Trainer::saveOnTheWay(int64_t step, bool isAsked) {
  Status failure;
  DYNA_RETURN_IF_ERROR(save(step, failure));
  if (!canSave_)
    return notSaved(step, failure);
  if (!failure.isOk() && session_.writesFiles())
    progress_.note(formatText(
        "warning: nothing was saved after step %d, which is tried again in a "
        "minute at the latest: %s",
        step, failure.message()));
  if (isAsked && failure.isOk() && session_.writesFiles())
    progress_.note(
        formatText("note: SIGUSR1: saved after step %d, and goes on", step));
  return Status::ok();
}

/// Saves at the end: the last chance, with several tries if that may help.
Status Trainer::saveAtTheEnd(int64_t step) {
  Status failure;
  for (int pause : {1, 4, 0}) {
    DYNA_RETURN_IF_ERROR(save(step, failure));
    if (failure.isOk())
      return failure;
    if (!canSave_ || pause == 0)
      break;
    if (session_.writesFiles())
      progress_.note(formatText(
          "warning: nothing was saved, which is tried again in %d s: %s", pause,
          failure.message()));
    std::this_thread::sleep_for(std::chrono::seconds(pause));
  }
  return notSaved(step, failure);
}

/// Saves the trained steps before the run fails. All processes call it
/// together.
Status Trainer::saveAndFail(const Status &failure) {
  if (summary_.steps == 0 || options_.save.empty() || !canSave_)
    return failure;
  int64_t step = summary_.firstStep + summary_.steps;
  Status saved = saveAtTheEnd(step);
  return Status(failure.code(),
                failure.message() +
                    (saved.isOk()
                         ? formatText(" (the run up to step %d is in %s)", step,
                                      options_.save)
                         : "; then " + saved.message()));
}

Status Trainer::finish() {
  if (pruning_.isOn())
    summary_.pruning = pruning_.describeEnd();
  if (freezing_.isOn())
    summary_.freezing = freezing_.describe();
  if (rebalance_.isOn())
    summary_.balance = rebalance_.describeEnd();
  summary_.isWhole = summary_.firstStep + summary_.steps >= options_.steps;
  if (summary_.steps > 0)
    DYNA_RETURN_IF_ERROR(saveAtTheEnd(summary_.firstStep + summary_.steps));
  progress_.finish();
  // Training is done, so show its result before an error of these files.
  auto remember = [&](const Status &written) {
    if (notWritten_.isOk())
      notWritten_ = written;
  };
  if (!options_.trace.empty())
    remember(replaceFile(pathOfRank(session_, options_.trace),
                         traceText(session_, predicted_)));
  if (!options_.counts.empty())
    remember(replaceFile(pathOfRank(session_, options_.counts),
                         counts_.toJson(*session_.ranks)));
  if (!options_.gradNorms.empty() && session_.writesFiles())
    remember(writeGradientNorms());
  return evaluateHeldOut(summary_.heldOutAfter, "end");
}

Status Trainer::endFiles() {
  Status written = metrics_.flush();
  if (written.isOk())
    written = notWritten_;
  if (written.isOk())
    return written;
  std::string done = summary_.isWhole ? "all steps were done"
                                      : "the run was stopped before its end";
  return Status(written.code(),
                written.message() + " (" + done +
                    (summary_.savedTo.empty()
                         ? ")"
                         : ", and the model is in " + summary_.savedTo + ")"));
}

} // namespace dyna
