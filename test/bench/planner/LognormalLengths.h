//===- LognormalLengths.h - A drawn mini-batch ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_BENCH_PLANNER_LOGNORMALLENGTHS_H
#define DYNA_TEST_BENCH_PLANNER_LOGNORMALLENGTHS_H

#include "runtime/abi/Random.h"

#include <algorithm>
#include <cmath>
#include <vector>

namespace dyna {

/// So many tokens in lognormal(4.5, 1.1) lengths of 8 to `longest`.
inline std::vector<int64_t> lognormalLengths(int64_t tokens, int64_t longest) {
  std::vector<int64_t> lengths;
  for (uint64_t i = 0; tokens > 0; ++i) {
    double u, v;
    dyna_parameter_uniforms(5, i, &u, &v);
    const double normal = std::sqrt(-2 * std::log(u)) * std::cos(2 * M_PI * v);
    const int64_t length = std::clamp<int64_t>(
        std::llround(std::exp(4.5 + 1.1 * normal)), 8, longest);
    lengths.push_back(std::min(length, tokens));
    tokens -= lengths.back();
  }
  return lengths;
}

} // namespace dyna

#endif // DYNA_TEST_BENCH_PLANNER_LOGNORMALLENGTHS_H
