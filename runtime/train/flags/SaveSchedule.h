//===- SaveSchedule.h - When a run is saved ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// After so many steps, or after so much time; and soon again when a save has
// failed: a disk that is full, or a server that does not answer, is a reason to
// try again and not to lose the run.
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

  /// "100" (steps), "30s", "10min", "2h"; "0": only at the end.
  static StatusOr<SaveSchedule> parse(const std::string &text);

  /// The run, or its first step, begins now.
  void start(Clock::time_point now) { last_ = now; }
  /// Whether to save when so many steps are done.
  bool isDue(int64_t steps, Clock::time_point now) const;
  /// Saves on the way and at the end of so many steps, at most.
  int64_t mostSaves(int64_t steps) const;
  void saved(Clock::time_point now);
  void failed(Clock::time_point now);

  /// After a save that failed.
  static constexpr std::chrono::seconds patience{60};

private:
  int64_t steps_ = 0;            ///< 0: not by steps
  std::chrono::seconds time_{0}; ///< 0: not by time
  Clock::time_point last_;
  bool hasFailed_ = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SAVESCHEDULE_H
