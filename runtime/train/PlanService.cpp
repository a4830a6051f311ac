//===- PlanService.cpp - A process that only plans ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/PlanService.h"

#include "runtime/base/Text.h"
#include "runtime/train/PlanSource.h"
#include "runtime/train/Signals.h"
#include "runtime/train/StoredPlans.h"

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

  const std::string &prefix() const { return prefix_; }
  void stop() { isStopped_ = true; }

  /// The next step that may be planned, once it may; without samples at the end.
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
  /// False when there is nothing more to plan.
  StatusOr<bool> awaitTurn() {
    auto deadline = Clock::now() + std::chrono::seconds(options_.timeout);
    std::string before;
    while (!isStopped_ && !stopSignal()) {
      DYNA_RETURN_IF_ERROR(announce());
      DYNA_ASSIGN_OR_RETURN(auto text, store_.find(markKey(prefix_)));
      if (text && *text != before) {
        before = *text;
        deadline = Clock::now() + std::chrono::seconds(options_.timeout);
      }
      if (text) {
        DYNA_ASSIGN_OR_RETURN(PlanMark mark, PlanMark::fromJson(*text));
        DYNA_ASSIGN_OR_RETURN(bool isOver, follow(mark));
        if (isOver) {
          // It may have been put once more since the executors removed it.
          DYNA_RETURN_IF_ERROR(store_.remove(plannersKey(prefix_)));
          return false;
        }
        if (run_ && next_ >= options_.steps)
          return false;
        if (run_ && next_ <= mark.step + options_.planAhead)
          return true;
      }
      if (Clock::now() >= deadline)
        return silence();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
    return false;
  }

  /// Executors leave the planning to planners as long as they hear of them.
  Status announce() {
    if (Clock::now() < announced_ + plannersAreKept / 6)
      return Status::ok();
    announced_ = Clock::now();
    return store_.put(plannersKey(prefix_), std::to_string(number_.count),
                      plannersAreKept);
  }

  /// To where the executors stand, if that is not within what was read: in
  /// another run, further on, or with a store that forgot what was put. True if
  /// their run, which this process has seen going on, is over.
  StatusOr<bool> follow(const PlanMark &mark) {
    if (mark.hasEnded)
      return run_ == mark.run && run_ != 0;
    int64_t losses = store_.losses();
    bool isLost = losses != losses_;
    if (run_ == mark.run && !isLost && next_ >= mark.step)
      return false;
    if (isLost)
      announced_ = {};
    run_ = mark.run;
    losses_ = losses;
    next_ = mark.step;
    DYNA_RETURN_IF_ERROR(reader_.seek(mark.cursor));
    return false;
  }

  Status silence() const {
    return Status(
        StatusCode::DeadlineExceeded,
        run_ ? formatText("executors have done nothing in %s for %d s "
                          "(--timeout): step %d was the last that they wanted",
                          store_.describe(), options_.timeout, next_)
             : formatText("no executors with these flags and data have come to "
                          "%s within %d s (--timeout): start them with the "
                          "same program, data, strategy and step sizes",
                          store_.describe(), options_.timeout));
  }

  const Session &session_;
  const TrainOptions &options_;
  Store &store_;
  const PlannerNumber number_;
  const std::string prefix_;
  BatchReader reader_;
  int64_t next_ = 0; ///< step that is read next
  uint64_t run_ = 0; ///< that is followed; 0: none yet
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
    DYNA_RETURN_IF_ERROR(putPlan(store, follower.prefix(), step));
    ++plans;
    return Status::ok();
  };
  // The executors' mark bounds how far this gets; the queue only has a place for
  // each thread.
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
