//===- PlanAhead.h - Plans steps in threads while others run ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// To read, plan and verify a mini-batch needs no results of training. So
// threads do it for the next steps while the device works on this one. One
// thread at a time reads the next mini-batch, in order. Several threads plan
// side by side. Steps come out with the same order and contents as without
// threads.
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
  MiniBatch batch;   ///< empty at the end of the data
  DataCursor begin;  ///< position of this step's data
  DataCursor cursor; ///< position of the data after this step
  bool update = true;
  /// The plan, unless the batch is empty.
  std::optional<VerifiedStep> plan;
  double planSeconds = 0;      ///< to plan and verify, or to fetch the plan
  double predictedSeconds = 0; ///< of the step, by --costs; 0: not predicted
  /// Full prediction; set if this process has the programs of all ranks.
  std::optional<PlanReport> predicted;
};

class PlanAhead {
public:
  /// Returns the next step without its plan. Called by one thread at a time, at
  /// most `steps` times, and not after a failure or the end of the data.
  using Reader = std::function<StatusOr<PlannedStep>()>;
  /// Sets the plan of a step that was read. Called from several threads at once.
  using Maker = std::function<Status(PlannedStep &)>;
  struct Options {
    /// Largest number of steps that are waiting or being made, besides the one
    /// that runs. With 0 each step is made in the caller's thread when it is
    /// asked for.
    int64_t ahead = 0;
    int64_t threads = 1;
    int64_t steps = 0;
    /// Called, if given, before threads are joined. It must end whatever they
    /// wait for.
    std::function<void()> stop = nullptr;
  };

  PlanAhead(Reader read, Maker make, const Options &options);
  /// Waits until the steps that are being made are ready, and drops them.
  ~PlanAhead();

  /// Returns the next step. A failure comes after all steps before it. Called
  /// at most `steps` times, and not after a failure.
  StatusOr<PlannedStep> next();
  /// Returns true if `next` would not wait, now or within `patience`. Always
  /// false if steps are made in the caller's thread.
  bool isReady(std::chrono::milliseconds patience = {});
  /// Returns the number of calls of `next` that found no step ready.
  int64_t waits() const { return waits_; }

private:
  /// Filled by a thread, emptied by `next`.
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
  std::vector<std::thread>
      threads_; ///< last, because they use the other members
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANAHEAD_H
