//===- PlanAhead.h - Steps made ready while others run ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reading, planning and proving a mini-batch needs none of the numbers of
// training, so threads do it for the next steps while the device works on this
// one. Mini-batches are read one after another, whatever thread comes first, and
// planned side by side; steps come out in the order, and with the contents, that
// they have without threads.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANAHEAD_H
#define DYNA_RUNTIME_TRAIN_PLANAHEAD_H

#include "runtime/data/BatchReader.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/plan/verify/VerifiedPlan.h"
#include "runtime/planner/report/PlanReport.h"
#include "runtime/train/session/RangedGraphs.h"

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>

namespace dyna {

struct PlannedStep {
  int64_t step = 0;
  MiniBatch batch;   ///< empty: the data is at its end
  DataCursor begin;  ///< where its data begin
  DataCursor cursor; ///< where the data goes on after this step
  bool update = true;
  /// Of every batch that is not empty: one of the two.
  std::optional<VerifiedPlan> plan;
  std::optional<PlannedPhases> phases; ///< with --ranges
  /// The step as it is stored: one phase unless the run has --ranges.
  plan::StepPlan toStepPlan() const {
    return plan ? stepOf(plan->plan()) : phases->step.toStepPlan();
  }
  /// Plans of all phases.
  std::vector<const plan::Plan *> plans() const {
    if (plan)
      return {&plan->plan()};
    std::vector<const plan::Plan *> all;
    for (const VerifiedStep::Phase &phase : phases->step.phases())
      all.push_back(&phase.plan.plan());
    return all;
  }
  /// Whether this process has the programs of all ranks.
  bool isWhole() const {
    if (plan)
      return plan->isWhole();
    for (const VerifiedStep::Phase &phase : phases->step.phases())
      if (!phase.plan.isWhole())
        return false;
    return true;
  }
  double planSeconds = 0;      ///< that planning and proof took, or the fetch
  double predictedSeconds = 0; ///< of the step, by --costs; 0: by nobody
  /// More of that, where this process has seen the whole plan.
  std::optional<PlanReport> predicted;
};

class PlanAhead {
public:
  /// Gives steps without their plans. Called from one thread at a time, no more
  /// often than there are steps, nor after a failure or the data's end.
  using Reader = std::function<StatusOr<PlannedStep>()>;
  /// Sets the plan of a step that was read. Called from several threads at once.
  using Maker = std::function<Status(PlannedStep &)>;
  struct Options {
    /// Steps that wait or are being made, at most, besides the one that runs.
    /// 0: each is made when it is asked for, in the caller's thread.
    int64_t ahead = 0;
    int64_t threads = 1;
    int64_t steps = 0;
    /// Called, if given, before threads are waited for: ends what they wait for.
    std::function<void()> stop = nullptr;
  };

  PlanAhead(Reader read, Maker make, const Options &options);
  /// Waits until the steps that are being made are ready, and drops them.
  ~PlanAhead();

  /// The next step; a failure comes after all steps before it. Not to be
  /// called more than `steps` times, nor after a failure.
  StatusOr<PlannedStep> next();
  /// Whether `next` would not wait, now or within `patience`. Never, where steps
  /// are made when they are asked for.
  bool isReady(std::chrono::milliseconds patience = {});
  /// Calls of `next` that found no step ready.
  int64_t waits() const { return waits_; }

private:
  /// Filled by a thread, taken by `next`.
  struct Slot {
    std::optional<StatusOr<PlannedStep>> step;
  };
  void work();
  bool hasStep() const;
  StatusOr<PlannedStep> readGuarded();
  void makeGuarded(StatusOr<PlannedStep> &step);

  const Reader read_;
  const Maker make_;
  const Options options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Slot> slots_; ///< in the order of steps; grows only at its end
  int64_t stepsRead_ = 0;
  bool isReading_ = false, isAtEnd_ = false, stopped_ = false;
  int64_t waits_ = 0;
  std::vector<std::thread> threads_; ///< last, as they use the others
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANAHEAD_H
