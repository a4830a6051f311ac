//===- RunBeacon.h - Tells planners of a run --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs whose plans are alike share a server and the beginning of their keys. Each
// takes a slot of those and repeats its mark there every few seconds, also in long
// steps: a run that was killed loses its slot, and its planners look for another.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_RUNBEACON_H
#define DYNA_RUNTIME_TRAIN_RUNBEACON_H

#include "runtime/store/Store.h"
#include "runtime/train/plans/PlanMark.h"

#include <condition_variable>
#include <mutex>
#include <thread>

namespace dyna {

/// Repeats the mark of one run of executors; used by the process of rank 0.
class RunBeacon {
public:
  /// `store` must outlive it.
  RunBeacon(Store &store, std::string prefix)
      : store_(store), prefix_(std::move(prefix)) {}
  ~RunBeacon();

  /// Puts the mark of a run that stands there, and repeats it from then on. Fails
  /// if the store does, or if kMostRuns other runs have the slots.
  Status say(const PlanMark &mark);
  /// Puts it once more if the store was lost since, and may have forgotten it.
  Status sayAfterLoss();
  /// Says that the run is over: its planners end, the slot is free.
  void end();

private:
  Status put();
  void repeat();
  void stop();

  Store &store_;
  const std::string prefix_;
  std::mutex mutex_; ///< of all that follows
  PlanMark mark_;
  bool isSaid_ = false, isStopped_ = false;
  int slot_ = 0;
  int64_t losses_ = 0;
  std::condition_variable wake_;
  std::thread thread_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_RUNBEACON_H
