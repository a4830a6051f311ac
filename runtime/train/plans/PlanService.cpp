//===- PlanService.cpp - Plans the steps of other processes ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanService.h"

#include "runtime/base/text/Text.h"
#include "runtime/train/plans/PlanSource.h"
#include "runtime/train/plans/StoredPlans.h"
#include "runtime/train/session/Signals.h"

#include <atomic>
#include <thread>

namespace dyna {
namespace {

using Clock = Store::Clock;

/// Follows the executors' mark and reads their mini-batches.
class Follower {
public:
  Follower(const Session &session, Store &store, const PlannerNumber &number)
      : session_(session), options_(session.options), store_(store),
        number_(number), prefix_(planPrefix(session)),
        reader_(session.data, session.batchOptions()) {}

  /// Keys of the run that is followed begin with it.
  std::string runKey() const { return runPrefix(prefix_, run_); }
  void stop() { isStopped_ = true; }

  /// Reads the next step as soon as it may be planned; without samples at the
  /// end.
  StatusOr<PlannedStep> read() {
    DYNA_ASSIGN_OR_RETURN(bool goesOn, awaitTurn());
    PlannedStep step;
    step.step = next_;
    step.begin = reader_.cursor();
    if (!goesOn)
      return step;
    DYNA_ASSIGN_OR_RETURN(step.batch, session_.readBatch(reader_));
    step.cursor = reader_.cursor();
    ++next_;
    return step;
  }

private:
  /// Waits for the next step. Returns false if there is nothing more to plan.
  StatusOr<bool> awaitTurn() {
    auto deadline = Clock::now() + std::chrono::seconds(options_.timeout);
    while (!isStopped_ && !stopSignal()) {
      DYNA_RETURN_IF_ERROR(announce());
      DYNA_ASSIGN_OR_RETURN(auto mark, run_ ? findMark() : join());
      if (run_ && !mark) {
        DYNA_ASSIGN_OR_RETURN(auto ended, store_.find(endedKey(runKey())));
        if (ended)
          return leave();
        // The run was killed, or the store lost its entry, which a live run
        // repeats.
        run_ = 0;
      }
      if (mark) {
        if (mark->step != seen_)
          deadline = Clock::now() + std::chrono::seconds(options_.timeout);
        seen_ = mark->step;
        DYNA_RETURN_IF_ERROR(follow(*mark));
        if (next_ >= options_.steps)
          return false;
        if (next_ <= mark->step + std::max(options_.planAhead, mark->ahead))
          return true;
      }
      if (Clock::now() >= deadline)
        return silence();
      std::this_thread::sleep_for(
          std::chrono::milliseconds(mark ? kMarkPause : kRunsPause));
    }
    return false;
  }

  /// Returns the mark of a slot; nothing if the slot is free.
  StatusOr<std::optional<PlanMark>> markOf(int slot) {
    const std::string key = slotKey(prefix_, slot);
    DYNA_ASSIGN_OR_RETURN(auto text, store_.find(key));
    if (!text)
      return std::optional<PlanMark>();
    StatusOr<PlanMark> mark = PlanMark::fromJson(*text);
    if (!mark.isOk())
      return Status::invalidArgument(formatText("%s, key %s: %s: remove it",
                                                store_.describe(), key,
                                                mark.status().message()));
    return std::optional<PlanMark>(std::move(*mark));
  }

  /// Returns the mark of the followed run; nothing if it is in no slot.
  StatusOr<std::optional<PlanMark>> findMark() {
    for (int i = 0; i < kMostRuns; ++i) {
      const int slot = (slot_ + i) % kMostRuns;
      DYNA_ASSIGN_OR_RETURN(auto mark, markOf(slot));
      if (!mark || mark->run != run_)
        continue;
      slot_ = slot;
      return mark;
    }
    return std::optional<PlanMark>();
  }

  /// Follows the first run that wants this planner; its mark.
  StatusOr<std::optional<PlanMark>> join() {
    runs_ = 0;
    for (int slot = 0; slot < kMostRuns; ++slot) {
      DYNA_ASSIGN_OR_RETURN(auto mark, markOf(slot));
      if (!mark)
        continue;
      ++runs_;
      DYNA_ASSIGN_OR_RETURN(bool isOurs, claim(runPrefix(prefix_, mark->run)));
      if (!isOurs)
        continue;
      // Planners that still wait register again.
      DYNA_RETURN_IF_ERROR(store_.remove(plannersKey(prefix_)));
      run_ = mark->run;
      slot_ = slot;
      seen_ = -1;
      losses_ = store_.losses();
      announced_ = Clock::now();
      next_ = mark->step;
      DYNA_RETURN_IF_ERROR(reader_.seek(mark->cursor));
      return mark;
    }
    return std::optional<PlanMark>();
  }

  /// Becomes planner I of N of that run, or stays it, unless it has one or has
  /// planners of another number.
  StatusOr<bool> claim(const std::string &run) {
    const std::string count = std::to_string(number_.count);
    DYNA_ASSIGN_OR_RETURN(auto planners, store_.find(plannersKey(run)));
    if (planners && *planners != count)
      return false;
    DYNA_ASSIGN_OR_RETURN(bool isOurs,
                          hold(plannerKey(run, number_.index), name_));
    return isOurs ? hold(plannersKey(run), count) : false;
  }

  /// Puts a value, or keeps it for longer, where no other one stands.
  StatusOr<bool> hold(const std::string &key, const std::string &value) {
    DYNA_ASSIGN_OR_RETURN(bool isNew,
                          store_.putNew(key, value, plannersAreKept));
    if (isNew)
      return true;
    DYNA_ASSIGN_OR_RETURN(auto there, store_.find(key));
    if (there && *there != value)
      return false;
    DYNA_RETURN_IF_ERROR(store_.put(key, value, plannersAreKept));
    return true;
  }

  /// Runs leave the planning to planners as long as they hear of them. One that
  /// has said nothing for too long may find another in its place.
  Status announce() {
    if (Clock::now() < announced_ + (run_ ? plannersAreKept / 6 : kWaitingSaid))
      return Status::ok();
    announced_ = Clock::now();
    if (!run_)
      return store_.put(plannersKey(prefix_), std::to_string(number_.count),
                        plannersAreKept);
    DYNA_ASSIGN_OR_RETURN(bool isOurs, claim(runKey()));
    if (!isOurs)
      run_ = 0;
    return Status::ok();
  }

  /// Leaves the run after its end. Returns false: there is nothing more to
  /// plan.
  StatusOr<bool> leave() {
    // Planners may have registered again after the executors removed the
    // entries.
    DYNA_RETURN_IF_ERROR(store_.remove(plannersKey(runKey())));
    DYNA_RETURN_IF_ERROR(store_.remove(plannerKey(runKey(), number_.index)));
    return false;
  }

  /// Goes to the position of the executors if it is outside of the steps that
  /// were read. It may be further on, or the store may have lost plans.
  Status follow(const PlanMark &mark) {
    int64_t losses = store_.losses();
    bool isLost = losses != losses_;
    if (!isLost && next_ >= mark.step)
      return Status::ok();
    if (isLost)
      announced_ = {};
    losses_ = losses;
    next_ = mark.step;
    return reader_.seek(mark.cursor);
  }

  Status silence() const {
    std::string text;
    if (run_)
      text = formatText("executors have done nothing in %s for %d s "
                        "(--timeout): step %d was the last that they wanted",
                        store_.describe(), options_.timeout, next_);
    else if (runs_ > 0)
      text = formatText(
          "every run with these flags and data in %s (%d) has planner %d or "
          "planners of another number than %d, for %d s (--timeout)",
          store_.describe(), runs_, number_.index, number_.count,
          options_.timeout);
    else
      text = formatText("no executors with these flags and data have come to "
                        "%s within %d s (--timeout): start them with the "
                        "same program, data, strategy and step sizes",
                        store_.describe(), options_.timeout);
    return Status(StatusCode::DeadlineExceeded, text);
  }

  /// Milliseconds between two looks at the mark of the run, and at all runs.
  static constexpr int kMarkPause = 5, kRunsPause = 20;
  /// Interval at which planners that wait for a run register again. The first
  /// planner that joins a run removes all registrations.
  static constexpr std::chrono::seconds kWaitingSaid{1};

  const Session &session_;
  const TrainOptions &options_;
  Store &store_;
  const PlannerNumber number_;
  const std::string prefix_;
  BatchReader reader_;
  int64_t next_ = 0; ///< step that is read next
  const std::string name_ = formatText("%016x", drawRun());
  /// Number of the run that is followed; 0: none. Planning threads read it.
  std::atomic<uint64_t> run_{0};
  int slot_ = 0;      ///< its last slot
  int runs_ = 0;      ///< runs found by the last search
  int64_t seen_ = -1; ///< step of the last mark
  int64_t losses_ = 0;
  Clock::time_point announced_{};
  std::atomic<bool> isStopped_{false};
};

} // namespace

StatusOr<PlanServiceResult> servePlans(const Session &session, Store &store,
                                       const PlannerNumber &number) {
  Follower follower(session, store, number);
  std::unique_ptr<PlanSource> maker = planHere(session);
  std::atomic<int64_t> plans{0};
  auto make = [&](PlannedStep &step) -> Status {
    if (step.step % number.count != number.index)
      return Status::ok();
    DYNA_RETURN_IF_ERROR(maker->plan(step));
    // If a new run came meanwhile, the plan is as good under its key.
    DYNA_RETURN_IF_ERROR(putPlan(store, follower.runKey(), step));
    ++plans;
    return Status::ok();
  };
  // The executors' mark limits how far this plans ahead. The queue only needs a
  // slot for each thread.
  PlanAhead::Options options;
  options.threads = session.options.planThreads;
  options.ahead = options.threads;
  options.steps = mostSteps;
  options.stop = [&] { follower.stop(); };
  PlanAhead ahead([&] { return follower.read(); }, make, options);
  while (true) {
    DYNA_ASSIGN_OR_RETURN(PlannedStep step, ahead.next());
    if (step.batch.samples.empty())
      return PlanServiceResult{plans, stopSignal()};
  }
}

} // namespace dyna
