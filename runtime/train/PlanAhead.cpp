//===- PlanAhead.cpp - Steps made ready while others run ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/PlanAhead.h"

#include "runtime/base/Guard.h"

#include <csignal>

namespace dyna {

PlanAhead::PlanAhead(Maker make, int64_t ahead, int64_t steps)
    : make_(std::move(make)), ahead_(static_cast<size_t>(ahead)) {
  if (ahead_ == 0 || steps <= 0)
    return;
  // Signals are for the main thread, whose handler has a stack of its own.
  sigset_t all, before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  // Without a thread, steps are made when they are wanted.
  if (auto thread = startThread("plans", [this, steps] { work(steps); });
      thread.isOk())
    thread_ = std::move(*thread);
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PlanAhead::~PlanAhead() {
  if (!thread_.joinable())
    return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void PlanAhead::work(int64_t steps) {
  for (int64_t made = 0; made < steps; ++made) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return stopped_ || ready_.size() < ahead_; });
      if (stopped_)
        return;
    }
    StatusOr<PlannedStep> step = makeGuarded();
    bool last = !step.isOk() || step->batch.samples.empty();
    {
      std::lock_guard<std::mutex> lock(mutex_);
      ready_.push_back(std::move(step));
    }
    changed_.notify_all();
    if (last)
      return;
  }
}

StatusOr<PlannedStep> PlanAhead::makeGuarded() {
  try {
    return make_();
  } catch (...) {
    return currentFailure();
  }
}

StatusOr<PlannedStep> PlanAhead::next() {
  if (!thread_.joinable())
    return makeGuarded();
  std::unique_lock<std::mutex> lock(mutex_);
  // The thread always makes a next step or a failure: this ends.
  changed_.wait(lock, [&] { return !ready_.empty(); });
  StatusOr<PlannedStep> step = std::move(ready_.front());
  ready_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return step;
}

} // namespace dyna
