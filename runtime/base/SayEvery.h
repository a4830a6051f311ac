//===- SayEvery.h - When work that goes on is told of -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_SAYEVERY_H
#define DYNA_RUNTIME_BASE_SAYEVERY_H

#include <chrono>

namespace dyna {

/// Says nothing of what is done soon.
class SayEvery {
public:
  explicit SayEvery(std::chrono::milliseconds pause = std::chrono::seconds(10))
      : pause_(pause) {}

  /// Whether so much time has passed since it was made, or was last due.
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

#endif // DYNA_RUNTIME_BASE_SAYEVERY_H
