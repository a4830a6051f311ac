//===- Trainer.h - Runs the training loop -----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_TRAINER_H
#define DYNA_RUNTIME_TRAIN_TRAINER_H

#include "runtime/base/file/OutputFile.h"
#include "runtime/train/files/Counts.h"
#include "runtime/train/files/Metrics.h"
#include "runtime/train/files/Progress.h"
#include "runtime/train/flags/SaveSchedule.h"
#include "runtime/train/loop/AutoPack.h"
#include "runtime/train/loop/Evaluator.h"
#include "runtime/train/loop/FreezeEvents.h"
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

/// Sums over the steps of a run with ranges.
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

/// Results of a run.
struct TrainSummary {
  int64_t firstStep = 0; ///< steps that were done before
  int64_t steps = 0;     ///< steps done now
  int stoppedBy = 0;     ///< number of a signal; 0: none
  /// A signal arrived during a step, and that step was dropped.
  bool hasDroppedStep = false;
  static constexpr size_t averagedLosses = 10;
  double firstLoss = 0;
  std::deque<double> lastLosses; ///< up to `averagedLosses`, one a step
  PredictionErrors predictions;  ///< of steps
  double coreWaitSeconds = 0;    ///< of these steps, see StepResult
  std::optional<Evaluation> heldOutBefore, heldOutAfter;
  int64_t tokens = 0;
  double seconds = 0; ///< of the steps
  PhaseSummary phases;
  double flops = 0;
  int64_t otherSchedules = 0; ///< steps with another schedule
  int64_t slicedSteps = 0;    ///< steps that slice samples
  SliceCount slices;          ///< of these steps
  std::string savedTo;
  int releasedTo =
      0; ///< ranks with which the run is to go on; 0: it was not released
  std::string pruning;     ///< share of zeros; empty without --prune
  std::string freezing;    ///< frozen layers; empty without --freeze
  std::string balance;     ///< moves of layers; empty without --rebalance
  bool isWhole = false;    ///< the run has done all steps that were asked for
  int64_t takenTokens = 0; ///< in micro-batches, with their padding
  /// Tokens that padded micro-batches of the same samples would have. If the
  /// plan of a step pads, the tokens that its micro-batches have.
  int64_t paddedTokens = 0;
  bool pads = false; ///< some micro-batches are padded

  /// Adds the tokens of a step. `mayPad`: plans may pad, even if this one does
  /// not.
  void addPadding(const PlannedStep &step, bool mayPad,
                  int64_t tokensPerMicroBatch);
};

/// The run that --resume continues.
struct ResumedRun {
  Checkpoint checkpoint;
  RunState state;
  /// Differences from the saved run. They are shown once the checkpoint is
  /// known to be of this model.
  std::vector<std::string> warnings;
};

class Trainer {
public:
  /// At most one of `loaded`, whose parameters the run starts from, and
  /// `resumed` is not null. All must outlive the trainer.
  Trainer(Session &session, const Checkpoint *loaded,
          const ResumedRun *resumed);

  /// Called before each step with its number, from 0. Returns the strategy to
  /// go over to first, if any. All processes must return the same.
  using ChooseNext = std::function<std::optional<NextStrategy>(int64_t step)>;
  void setNext(ChooseNext choose) { chooseNext_ = std::move(choose); }
  /// Sets a probe, for tests.
  void setProbe(Rebalance::Probe probe) {
    rebalance_.setProbe(std::move(probe));
  }

  Status run();
  const TrainSummary &summary() const { return summary_; }
  /// Called after `run`. Fails if lines of the metrics are missing, or if
  /// another file could not be written. This concerns one process and ends no
  /// other.
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
  /// Returns true if a point of the curve of held-out losses is due after
  /// `step` steps of the run.
  bool isCurveDue(int64_t step) const {
    return options_.evaluateEvery > 0 && step % options_.evaluateEvery == 0;
  }
  /// Evaluates between two steps of the run, if that is due.
  Status evaluateOnTheWay(int64_t step);
  void writeCurvePoint(int64_t step, const Evaluation &evaluation);
  Status runSteps();
  Status runPlannedSteps();
  /// Start to plan from this step on, and end it.
  Status openPlans(int64_t step);
  void closePlans();
  /// Replaces the graphs before a step, if that is asked for. If the
  /// replacement is refused, tells the user and continues with the present
  /// graphs.
  Status replaceIfWanted(int64_t step);
  /// Strategy that a run goes over to before a step.
  struct Wanted {
    NextStrategy next;
    bool isRebalance = false; ///< a cut of --rebalance
    bool isPacked = false;    ///< ranks of `--repack auto`
    /// Layers that --freeze freezes from this step on, if they change.
    std::optional<FrozenLayers> frozen = std::nullopt;
  };
  StatusOr<std::optional<Wanted>> wantedBefore(int64_t step);
  /// Asks `--repack auto`, if an answer is due before a step.
  StatusOr<std::optional<Wanted>> packedBefore(int64_t step);
  /// Tells all that measure steps that the model is another one.
  void modelChanged();
  /// Returns how many steps run from this one on before the model or the strategy
  /// changes, or the run ends.
  int64_t stepsLeft(int64_t step) const;
  /// Plans a replacement of graphs before a step, and checks that this process
  /// has the memory.
  StatusOr<PlannedReplacement> planWanted(int64_t step,
                                          const Wanted &wanted) const;
  /// Tells the user of a finished replacement.
  bool endsReleased(int64_t step, const PlannedReplacement &next);
  void tellReplaced(int64_t step, const std::string &before,
                    const PlannedReplacement &done, const Wanted &wanted);
  /// Prunes weights before a step, if there is an event.
  Status pruneIfDue(int64_t step);
  /// Called between two steps, after `done` steps. Lets devices time new
  /// products, and tells the user.
  Status timeAlgorithms(int64_t done);
  /// Facts that all processes agree on before a step: true if they hold on any
  /// process.
  struct Agreed {
    bool isSaveDue = false, hasFailed = false;
    bool isSaveAsked = false; ///< by SIGUSR1
  };
  StatusOr<Agreed> agree(int64_t step, const StatusOr<PlannedStep> &planned);
  /// Reads the mini-batch of a step, without its plan.
  StatusOr<PlannedStep> readStep(int64_t step);

  using Clock = std::chrono::steady_clock;
  /// A step that was launched on the ranks and is not counted yet.
  struct LaunchedStep {
    int64_t step = 0;
    PlannedStep planned;
    double waited = 0; ///< seconds for the plan
    Clock::time_point begin;
    double traceBegin = 0;
    bool isPredicted = false; ///< in the trace
    bool isAhead = false;     ///< launched before the preceding step was read
    /// Result of a step that ran synchronously.
    std::optional<StepResult> result;
  };
  /// Returns how many steps are left in flight while the next plan is made. On
  /// a device that runs late this is 1, else 0. The device then has work while
  /// the host reads one step and launches the next. Whatever changes data that
  /// steps read, or reads data that they change, must finish them first.
  size_t stepsAhead() const;
  Status launchStep(int64_t step, PlannedStep planned, double waited);
  /// Reads the oldest launched step and processes its results.
  Status finishStep();
  /// Finishes launched steps until `count` are left.
  Status finishSteps(size_t count = 0);
  /// Writes the prediction of a step into the trace, beside the executed step.
  Status tracePredicted(const LaunchedStep &launched);
  /// Returns the metrics of a step that ran for `seconds`. `waited` is the wait
  /// for its plan, which comes on top.
  StepMetrics metricsOf(const LaunchedStep &launched, const StepResult &result,
                        double seconds, double waited) const;
  /// Tells --rebalance and `--repack auto` what a step took.
  void measureLoad(const LaunchedStep &launched, const StepMetrics &metrics,
                   const StepResult &result);
  /// Skips a step whose loss or gradient is not finite, or ends the run.
  Status takeNonfinite(const StepMetrics &metrics);
  /// Drops the launched steps after one that ends the run. They have changed
  /// nothing.
  void dropSteps();
  void countStep(const StepMetrics &metrics, const StepResult &result,
                 bool isFinite);
  StepScalars scalarsOf(int64_t step) const;
  /// Runs a step synchronously. With --print-grad-norms, also collects the
  /// gradients of the first step.
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
  TraceWriter predicted_;   ///< prediction of the traced steps, by costs
  int64_t tracedUntil_ = 0; ///< end of the range of traced steps
  double predictedEnd_ =
      0; ///< end of the last predicted step, in seconds of the trace
  const TrainOptions &options_;
  const Checkpoint *loaded_;
  const ResumedRun *resumed_;
  ChooseNext chooseNext_; ///< may be empty
  Moves moves_;
  FreezeEvents freezing_;
  Rebalance rebalance_;
  AutoPack packing_;
  BatchReader reader_;                 ///< ahead of the steps
  std::unique_ptr<PlanSource> source_; ///< while steps run, as the next
  std::unique_ptr<PlanAhead> plans_;
  DataCursor cursor_; ///< after the last step that was counted
  std::deque<LaunchedStep> launched_;
  Clock::time_point finished_; ///< when a step was last read
  Progress progress_;
  MetricsFile metrics_;
  /// Pipes, open from start to end so that their readers wait.
  std::vector<OutputFile> pipes_;
  bool hasWarnedOfMetrics_ = false;
  std::optional<CheckpointStore> store_;
  SaveSchedule saves_;
  int64_t saveSignals_ = 0; ///< number of SIGUSR1 that were answered
  int64_t savedStep_ = -1;
  /// False if a device of any process failed during a save, or did not answer
  /// in time. Such a device answers no more.
  bool canSave_ = true;
  int64_t skipped_ = 0;  ///< steps that were not finite, of the whole run
  bool hasLoss_ = false; ///< of any step, if finite
  std::vector<double> losses_;
  std::vector<double> gradientNorms_; ///< of each parameter, in the first step
  RankCounts counts_;
  PruneEvents pruning_;
  TrainSummary summary_;
  Status notWritten_ = Status::ok(); ///< of the files written at the end
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_TRAINER_H
