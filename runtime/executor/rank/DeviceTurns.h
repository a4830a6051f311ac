//===- DeviceTurns.h - Lets ranks of a device take turns --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two ranks of this process may share a device (runtime/plan/graph/Turns.h). Each is a
// thread with threads of its own for layer functions. A rank works only in its turn, so
// that the cores work for one of them at a time, in the planned order.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_RANK_DEVICETURNS_H
#define DYNA_RUNTIME_EXECUTOR_RANK_DEVICETURNS_H

#include "runtime/transport/Transport.h"

#include <condition_variable>
#include <cstdint>
#include <mutex>

namespace dyna {

/// Turns of one device, counted over all steps. Thread-safe.
class DeviceTurns {
public:
  /// Sets the number of ended turns to 0. No rank is in a step.
  void restart();
  /// Waits until so many turns have ended. Exchanges of the rank go on meanwhile. Fails if
  /// another rank fails, or after the transport's timeout.
  Status wait(int64_t turn, Transport &transport);
  /// Ends the present turn.
  void end();

private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int64_t ended_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_RANK_DEVICETURNS_H
