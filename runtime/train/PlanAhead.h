//===- PlanAhead.h - Steps made ready while others run ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reading and planning a mini-batch needs none of the numbers of training, so a
// thread does it for the next steps while the device works on this one. Steps
// come out in the order, and with the contents, that they have without it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANAHEAD_H
#define DYNA_RUNTIME_TRAIN_PLANAHEAD_H

#include "runtime/data/BatchReader.h"
#include "runtime/plan/Model.h"

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace dyna {

struct PlannedStep {
  MiniBatch batch; ///< empty: the data is at its end
  plan::Plan plan;
  DataCursor cursor; ///< where the data goes on after this step
};

class PlanAhead {
public:
  using Maker = std::function<StatusOr<PlannedStep>()>;

  /// `make` is called from one thread at a time: here, if `ahead` is 0, or in a
  /// thread that stays at most `ahead` steps before `next`. It is not called
  /// more than `steps` times, nor after a failure.
  PlanAhead(Maker make, int64_t ahead, int64_t steps);
  /// Waits until the step that is being made is ready, and drops it.
  ~PlanAhead();

  /// The next step; a failure comes after all steps before it. Not to be
  /// called more than `steps` times.
  StatusOr<PlannedStep> next();

private:
  void work(int64_t steps);
  StatusOr<PlannedStep> makeGuarded();

  Maker make_;
  const size_t ahead_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<StatusOr<PlannedStep>> ready_;
  bool stopped_ = false;
  std::thread thread_; ///< last, as it uses the others
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANAHEAD_H
