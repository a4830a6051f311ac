//===- DeviceTurns.cpp - Lets ranks of a device take turns ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/rank/DeviceTurns.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <chrono>

namespace dyna {

void DeviceTurns::restart() {
  const std::lock_guard<std::mutex> lock(mutex_);
  ended_ = 0;
}

Status DeviceTurns::wait(int64_t turn, Transport &transport) {
  // Nobody wakes a rank for its messages, so it looks after them, less and less often.
  using std::chrono::microseconds;
  constexpr microseconds longest(500);
  const Transport::Deadline deadline = transport.deadline();
  for (microseconds pause(20);; pause = std::min(2 * pause, longest)) {
    {
      std::unique_lock<std::mutex> lock(mutex_);
      if (changed_.wait_for(lock, pause, [&] { return ended_ == turn; }))
        return Status::ok();
    }
    DYNA_RETURN_IF_ERROR(transport.progress());
    if (Transport::Clock::now() >= deadline)
      return Status(StatusCode::DeadlineExceeded,
                    formatText("rank %d: its turn %d on the device it shares "
                               "did not come",
                               transport.rank(), turn));
  }
}

void DeviceTurns::end() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    ++ended_;
  }
  changed_.notify_all();
}

} // namespace dyna
