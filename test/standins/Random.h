//===- Random.h - Draws of the stand-ins ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_RANDOM_H
#define DYNA_TEST_STANDINS_RANDOM_H

#include <cstdint>

namespace dyna::standins {

/// A short generator whose draws follow from the seed alone, wherever it is
/// compiled: a counter with a step of odd bits, scrambled by two products.
class Random {
public:
  explicit Random(uint64_t seed) : state_(seed) {}

  uint64_t next() {
    uint64_t x = state_ += 0x9e3779b97f4a7c15;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
    x = (x ^ (x >> 32)) * 0xd6e8feb86659fd93;
    return x ^ (x >> 32);
  }
  /// 0 to `count` - 1; `count` is at least 1.
  uint64_t below(uint64_t count) { return next() % count; }

private:
  uint64_t state_;
};

} // namespace dyna::standins

#endif // DYNA_TEST_STANDINS_RANDOM_H
