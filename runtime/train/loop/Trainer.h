//===- Trainer.h - The training loop ----------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_TRAINER_H
#define DYNA_RUNTIME_TRAIN_TRAINER_H

#include "runtime/base/file/OutputFile.h"
#include "runtime/train/files/Counts.h"
#include "runtime/train/files/Metrics.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/flags/SaveSchedule.h"
#include "runtime/train/loop/Evaluator.h"
#include "runtime/train/loop/Moves.h"
#include "runtime/train/loop/PruneEvents.h"
#include "runtime/train/loop/Rebalance.h"
#include "runtime/train/open/ReplaceGraphs.h"
#include "runtime/train/plans/PlanSource.h"
#include "runtime/train/session/Checkpointing.h"
#include "runtime/train/session/Prediction.h"
#include "runtime/train/session/Session.h"

#include <chrono>
#include <deque>
#include <functional>
#include <map>
#include <optional>

namespace dyna {

/// Of a run with ranges: sums over its steps.
struct PhaseSummary {
  struct Strategy {
    int64_t samples = 0, merged = 0, steps = 0; ///< steps with samples
  };
  std::map<std::string, Strategy> strategies; ///< by their names
  int64_t phases = 0;
  double switchSeconds = 0;
  int64_t switchBytes = 0;

  void add(const StepMetrics &metrics);
};

/// What a run ends with.
struct TrainSummary {
  int64_t firstStep = 0; ///< steps that were done before
  int64_t steps = 0;     ///< steps done now
  int stoppedBy = 0;     ///< a signal's number; 0: by none
  /// The signal came in a step, which was dropped.
  bool hasDroppedStep = false;
  static constexpr size_t averagedLosses = 10;
  double firstLoss = 0;
  std::deque<double> lastLosses; ///< up to `averagedLosses`, one a step
  PredictionErrors predictions;  ///< of steps
  double coreWaitSeconds = 0;    ///< of these, StepResult's
  std::optional<Evaluation> heldOutBefore, heldOutAfter;
  int64_t tokens = 0;
  double seconds = 0; ///< of the steps
  PhaseSummary phases;
  double flops = 0;
  int64_t otherSchedules = 0; ///< steps with another schedule
  int64_t slicedSteps = 0;    ///< steps that slice samples
  SliceCount slices;          ///< of these steps
  std::string savedTo;
  std::string pruning;     ///< how much is zero; empty without --prune
  std::string balance;     ///< moves of layers; empty without --rebalance
  bool isWhole = false;    ///< all steps that were wanted are done
  int64_t takenTokens = 0; ///< that micro-batches had, with their padding
  /// What padded micro-batches of the same samples would have computed; or did,
  /// where a step's plan pads.
  int64_t paddedTokens = 0;
  bool pads = false; ///< some do

  /// `mayPad`: its plans were made to, whether they do or not.
  void addPadding(const PlannedStep &step, bool mayPad,
                  int64_t tokensPerMicroBatch);
};

/// The run that --resume continues.
struct ResumedRun {
  Checkpoint checkpoint;
  RunState state;
  /// About what differs from then; for the user once the checkpoint has turned
  /// out to be of this model.
  std::vector<std::string> warnings;
};

class Trainer {
public:
  /// At most one of `loaded`, whose parameters the run starts from, and
  /// `resumed` is not null. All must outlive the trainer.
  Trainer(Session &session, const Checkpoint *loaded,
          const ResumedRun *resumed);

  /// Asked before each step, by its number from 0, whether the run is to go over to
  /// other graphs first. All processes answer alike.
  using ChooseNext = std::function<std::optional<NextStrategy>(int64_t step)>;
  void setNext(ChooseNext choose) { chooseNext_ = std::move(choose); }
  /// For tests.
  void setProbe(Rebalance::Probe probe) {
    rebalance_.setProbe(std::move(probe));
  }

  Status run();
  const TrainSummary &summary() const { return summary_; }
  /// After `run`: fails if lines of the metrics are missing, or another file
  /// could not be written. That is this process's alone, and ends no other.
  Status endFiles();

private:
  void describeStart();
  Status openFiles();
  Status proveRoom();
  Status setParameters();
  Status loadParameters(const Checkpoint &checkpoint);
  Status seekData();
  void checkLogged(const Status &written);
  Status evaluateHeldOut(std::optional<Evaluation> &result, const char *when);
  /// Evaluates what is held out, after the steps that are counted. A signal leaves
  /// `stoppedBy` in the summary.
  StatusOr<Evaluation> evaluateNow();
  /// After so many steps of the run.
  bool isCurveDue(int64_t step) const {
    return options_.evaluateEvery > 0 && step % options_.evaluateEvery == 0;
  }
  /// Evaluates between two steps of the run, if that is due.
  Status evaluateOnTheWay(int64_t step);
  void writeCurvePoint(int64_t step, const Evaluation &evaluation);
  Status runSteps();
  Status runPlannedSteps();
  /// Starts to plan, from this step on, and ends it.
  Status openPlans(int64_t step);
  void closePlans();
  /// Replaces the graphs before a step, if that is wanted. A replacement that is refused
  /// is told, and the run goes on as it was.
  Status replaceIfWanted(int64_t step);
  /// The strategy that a run goes over to before a step.
  struct Wanted {
    NextStrategy next;
    bool isRebalance = false; ///< a cut of --rebalance
  };
  StatusOr<std::optional<Wanted>> wantedBefore(int64_t step);
  /// Returns how many steps run from this one on before the model or the strategy
  /// changes, or the run ends.
  int64_t stepsLeft(int64_t step) const;
  /// Plans a replacement of graphs before a step, and checks that this process can have it.
  StatusOr<PlannedReplacement> planWanted(int64_t step,
                                          const Wanted &wanted) const;
  /// Tells of a replacement that is done.
  void tellReplaced(int64_t step, const std::string &before,
                    const PlannedReplacement &done, const Wanted &wanted);
  /// Prunes weights before a step, if there is an event.
  Status pruneIfDue(int64_t step);
  /// Between steps, of which so many are done: lets devices time what is new to
  /// them, and tells of it.
  Status timeAlgorithms(int64_t done);
  /// What all processes do alike before a step, whoever of them wants it.
  struct Agreed {
    bool isSaveDue = false, hasFailed = false;
    bool isSaveAsked = false; ///< by SIGUSR1
  };
  StatusOr<Agreed> agree(int64_t step, const StatusOr<PlannedStep> &planned);
  /// Without its plan.
  StatusOr<PlannedStep> readStep(int64_t step);

  using Clock = std::chrono::steady_clock;
  /// A step that was given to the ranks, and is not counted yet.
  struct LaunchedStep {
    int64_t step = 0;
    PlannedStep planned;
    double waited = 0; ///< seconds for the plan
    Clock::time_point begin;
    double traceBegin = 0;
    bool isPredicted = false; ///< in the trace
    bool isAhead = false;     ///< launched before the one before was read
    /// Where it was run at once.
    std::optional<StepResult> result;
  };
  /// How many steps are left in flight when the next plan is asked for. On a device
  /// that runs late one is, so that it has work while the host reads a step, tells
  /// of it and launches the next one. What changes in between what steps read, or
  /// reads what they change, finishes them first.
  size_t stepsAhead() const;
  Status launchStep(int64_t step, PlannedStep planned, double waited);
  /// Reads the first step that was launched, and does what is to be done with its
  /// numbers.
  Status finishStep();
  /// The same until `count` are left.
  Status finishSteps(size_t count = 0);
  /// Into the trace, beside what was executed.
  Status tracePredicted(const LaunchedStep &launched);
  /// Of a step that took `seconds`, without `waited` for its plan.
  StepMetrics metricsOf(const LaunchedStep &launched, const StepResult &result,
                        double seconds, double waited) const;
  /// Passes over the step, or ends the run.
  Status takeNonfinite(const StepMetrics &metrics);
  /// Those behind a step that ends the run: they changed nothing.
  void dropSteps();
  void countStep(const StepMetrics &metrics, const StepResult &result,
                 bool isFinite);
  StepScalars scalarsOf(int64_t step) const;
  /// At once; with --print-grad-norms it looks at the first step's gradients.
  Status runPlan(int64_t step, const PlannedStep &planned, StepResult &result);
  Status collectGradientNorms();
  Status writeGradientNorms() const;
  Status save(int64_t step, Status &failure);
  Status saveIfDue(int64_t step, const Agreed &agreed);
  Status saveOnTheWay(int64_t step, bool isAsked);
  Status saveAtTheEnd(int64_t step);
  Status saveAndFail(const Status &failure);
  Status finish();

  Session &session_;
  TraceWriter predicted_;   ///< the traced steps, as costs say that they go
  int64_t tracedUntil_ = 0; ///< the step behind the last one that is traced
  double predictedEnd_ = 0; ///< of the last of them, in seconds of the trace
  const TrainOptions &options_;
  const Checkpoint *loaded_;
  const ResumedRun *resumed_;
  ChooseNext chooseNext_; ///< may be empty
  Moves moves_;
  Rebalance rebalance_;
  BatchReader reader_;                 ///< ahead of the steps
  std::unique_ptr<PlanSource> source_; ///< while steps run, as the next
  std::unique_ptr<PlanAhead> plans_;
  DataCursor cursor_; ///< after the last step that was counted
  std::deque<LaunchedStep> launched_;
  Clock::time_point finished_; ///< when a step was last read
  Progress progress_;
  MetricsFile metrics_;
  /// Open from the start to the end, so that their readers wait.
  std::vector<OutputFile> pipes_;
  bool hasWarnedOfMetrics_ = false;
  std::optional<CheckpointStore> store_;
  SaveSchedule saves_;
  int64_t saveSignals_ = 0; ///< those that were answered
  int64_t savedStep_ = -1;
  /// False once a device failed while its run was saved, or did not answer in time,
  /// on any process: it answers no more.
  bool canSave_ = true;
  int64_t skipped_ = 0;  ///< steps that were not finite, of the whole run
  bool hasLoss_ = false; ///< one that is finite
  std::vector<double> losses_;
  std::vector<double> gradientNorms_; ///< of each parameter, first step
  RankCounts counts_;
  PruneEvents pruning_;
  TrainSummary summary_;
  Status notWritten_ = Status::ok(); ///< of the files written at the end
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_TRAINER_H
