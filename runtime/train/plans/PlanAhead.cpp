//===- PlanAhead.cpp - Plans steps in threads while others run ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanAhead.h"

#include "runtime/base/error/Guard.h"

#include <algorithm>
#include <chrono>
#include <csignal>
#include <pthread.h>
#include <sched.h>

namespace dyna {

PlanAhead::PlanAhead(Reader read, Maker make, const Options &options)
    : read_(std::move(read)), make_(std::move(make)), options_(options) {
  if (options_.ahead == 0 || options_.steps <= 0)
    return;
  // Signals to the process go to the main thread, whose handler has its own
  // stack. A signal that an instruction raises stays in its thread. If it were
  // blocked there, it would end the process before any handler, such as the one
  // for unreadable pages.
  sigset_t others, before;
  sigfillset(&others);
  for (int own : {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGTRAP, SIGABRT, SIGSYS})
    sigdelset(&others, own);
  pthread_sigmask(SIG_SETMASK, &others, &before);
  // More threads than steps ahead would be idle. Without threads `next` makes
  // plans.
  int64_t count = std::min(options_.threads, options_.ahead);
  for (int64_t t = 0; t < count; ++t) {
    auto thread = startThread("plans", [this] { work(); });
    if (!thread.isOk())
      break;
    threads_.push_back(std::move(*thread));
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

PlanAhead::~PlanAhead() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    stopped_ = true;
  }
  changed_.notify_all();
  if (options_.stop)
    options_.stop();
  for (std::thread &thread : threads_)
    thread.join();
}

void PlanAhead::work() {
  // Threads that plan ahead must not take a core from a thread with urgent
  // work. `next` wakes these threads and must not wait for their work. If the
  // system refuses, waits are only longer. (Linux, measured beside the step
  // with two threads on two busy cores: a wait of 0.1 ms instead of 0.5 to 2
  // ms.)
  sched_param batch = {};
  (void)pthread_setschedparam(pthread_self(), SCHED_BATCH, &batch);
  std::unique_lock<std::mutex> lock(mutex_);
  while (true) {
    changed_.wait(lock, [&] {
      bool hasRoom = static_cast<int64_t>(slots_.size()) < options_.ahead;
      return stopped_ || isAtEnd_ || (!isReading_ && hasRoom);
    });
    if (stopped_ || isAtEnd_)
      return;
    // References to elements of a deque remain valid while its ends change.
    isReading_ = true;
    Slot &slot = slots_.emplace_back();
    lock.unlock();
    StatusOr<PlannedStep> step = readGuarded();
    lock.lock();
    isReading_ = false;
    isAtEnd_ = !step.isOk() || step->batch.samples.empty() ||
               ++stepsRead_ == options_.steps;
    lock.unlock();
    changed_.notify_all();
    makeGuarded(step);
    lock.lock();
    isAtEnd_ |= !step.isOk();
    slot.step = std::move(step);
    changed_.notify_all();
  }
}

StatusOr<PlannedStep> PlanAhead::readGuarded() {
  try {
    return read_();
  } catch (...) {
    return currentFailure();
  }
}

void PlanAhead::makeGuarded(StatusOr<PlannedStep> &step) {
  if (!step.isOk() || step->batch.samples.empty())
    return;
  auto begin = std::chrono::steady_clock::now();
  if (Status status = guarded([&] { return make_(*step); }); !status.isOk()) {
    step = status;
    return;
  }
  step->planSeconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin)
          .count();
}

bool PlanAhead::hasStep() const {
  return !slots_.empty() && slots_.front().step.has_value();
}

bool PlanAhead::isReady(std::chrono::milliseconds patience) {
  std::unique_lock<std::mutex> lock(mutex_);
  return !threads_.empty() &&
         changed_.wait_for(lock, patience, [this] { return hasStep(); });
}

StatusOr<PlannedStep> PlanAhead::next() {
  if (threads_.empty()) {
    ++waits_;
    StatusOr<PlannedStep> step = readGuarded();
    makeGuarded(step);
    return step;
  }
  std::unique_lock<std::mutex> lock(mutex_);
  waits_ += hasStep() ? 0 : 1;
  // This wait ends, because the threads always make the next step or a failure.
  changed_.wait(lock, [this] { return hasStep(); });
  StatusOr<PlannedStep> step = std::move(*slots_.front().step);
  slots_.pop_front();
  lock.unlock();
  changed_.notify_all();
  return step;
}

} // namespace dyna
