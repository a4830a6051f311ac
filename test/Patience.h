//===- Patience.h - How long tests wait for what must come ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_PATIENCE_H
#define DYNA_TEST_PATIENCE_H

#include <chrono>

namespace dyna {

/// A wait that ends by this limit hangs: no machine is so busy. No limit in seconds
/// decides a test (docs/contributing.md, test/lint/check_limits.py).
constexpr std::chrono::minutes kPatience{60};

inline std::chrono::steady_clock::time_point patienceEnds() {
  return std::chrono::steady_clock::now() + kPatience;
}

} // namespace dyna

#endif // DYNA_TEST_PATIENCE_H
