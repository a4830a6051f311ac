//===- RunBeacon.h - Announces a run to planners ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs with the same plans share a server and the prefix of their keys. Each
// run takes a slot of that prefix and repeats its mark there every few seconds,
// also during long steps. A run that was killed loses its slot, and its
// planners look for another run.
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

  /// Puts the mark of a run, and repeats it from then on. Fails if the store
  /// does, or if kMostRuns other runs have the slots.
  Status say(const PlanMark &mark);
  /// Puts the mark once more if the connection to the store was lost, because
  /// the store may have lost it.
  Status sayAfterLoss();
  /// Announces that the run is over. Its planners end, and the slot is free.
  void end();

private:
  Status put();
  void repeat();
  void stop();

  Store &store_;
  const std::string prefix_;
  std::mutex mutex_; ///< guards the members below
  PlanMark mark_;
  bool isSaid_ = false, isStopped_ = false;
  int slot_ = 0;
  int64_t losses_ = 0;
  std::condition_variable wake_;
  std::thread thread_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_RUNBEACON_H
