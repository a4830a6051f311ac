//===- SaveSchedule.h - Decides when a run is saved -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Saves after a number of steps or after a time. A failed save is tried again
// soon: the disk may be full or a server may not answer, and the run should not
// be lost.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SAVESCHEDULE_H
#define DYNA_RUNTIME_TRAIN_SAVESCHEDULE_H

#include "runtime/base/error/Status.h"

#include <chrono>
#include <string>

namespace dyna {

class SaveSchedule {
public:
  using Clock = std::chrono::steady_clock;

  /// Parses "100" (steps), "30s", "10min" or "2h". "0" saves only at the end.
  static StatusOr<SaveSchedule> parse(const std::string &text);

  /// Tells that the run, or its first step, begins now.
  void start(Clock::time_point now) { last_ = now; }
  /// Returns true if a save is due after `steps` steps.
  bool isDue(int64_t steps, Clock::time_point now) const;
  /// Returns an upper bound of the number of saves in `steps` steps, the last
  /// one included.
  int64_t mostSaves(int64_t steps) const;
  void saved(Clock::time_point now);
  void failed(Clock::time_point now);

  /// Seconds until the next attempt after a failed save.
  static constexpr std::chrono::seconds patience{60};

private:
  int64_t steps_ = 0;            ///< 0: not by steps
  std::chrono::seconds time_{0}; ///< 0: not by time
  Clock::time_point last_;
  bool hasFailed_ = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SAVESCHEDULE_H
