//===- Draw.h - Random problems that are the same every time ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_DRAW_H
#define DYNA_TEST_RUNTIME_PLANNER_DRAW_H

#include "runtime/abi/Random.h"

#include <cstdint>

namespace dyna {

class Draw {
public:
  explicit Draw(uint64_t seed) : state_(seed << 20) {}
  /// 0 to n - 1.
  int below(int n) {
    return static_cast<int>(dyna_mix64(state_++) % static_cast<uint64_t>(n));
  }

private:
  uint64_t state_;
};

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_DRAW_H
