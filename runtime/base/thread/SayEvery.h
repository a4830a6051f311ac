//===- SayEvery.h - Decides when to report progress -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_THREAD_SAYEVERY_H
#define DYNA_RUNTIME_BASE_THREAD_SAYEVERY_H

#include <chrono>

namespace dyna {

/// Reports progress of long work at intervals, and nothing for work that ends
/// soon.
class SayEvery {
public:
  explicit SayEvery(std::chrono::milliseconds pause = std::chrono::seconds(10))
      : pause_(pause) {}

  /// Returns true if the interval has passed since creation, or since it last
  /// returned true.
  bool isDue() {
    const auto now = std::chrono::steady_clock::now();
    if (now - said_ < pause_)
      return false;
    said_ = now;
    return true;
  }

private:
  const std::chrono::milliseconds pause_;
  std::chrono::steady_clock::time_point said_ =
      std::chrono::steady_clock::now();
};

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_THREAD_SAYEVERY_H
