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
#include "runtime/plan/verify/StepVerifier.h"
#include "runtime/planner/report/PlanReport.h"

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
  /// The plan, unless the batch is empty.
  std::optional<VerifiedStep> plan;
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
