//===- GridCosts.h - Costs of padded micro-batches from a table -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_GRIDCOSTS_H
#define DYNA_TEST_RUNTIME_PLANNER_GRIDCOSTS_H

#include "runtime/planner/cut/PartitionMicroBatches.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <vector>

namespace dyna {

/// A table over powers of two of samples and tokens, as a profile has one, and
/// lines in between.
class GridCosts {
public:
  GridCosts(const std::function<double(double, double)> &seconds, int samples,
            int tokens)
      : tokens_(tokens + 1) {
    for (int b = 0; b <= samples; ++b)
      for (int s = 0; s <= tokens; ++s)
        points_.push_back(seconds(std::ldexp(1, b), std::ldexp(1, s)));
  }

  double operator()(const PaddedShape &shape) const {
    int last = static_cast<int>(points_.size()) / tokens_ - 2;
    auto [b, x] = place(shape.samples, last);
    auto [s, y] = place(shape.longest.tokens, tokens_ - 2);
    const double *at = &points_[b * tokens_ + s];
    double few = at[0] + y * (at[1] - at[0]);
    double many = at[tokens_] + y * (at[tokens_ + 1] - at[tokens_]);
    return few + x * (many - few);
  }

private:
  static std::pair<int, double> place(int64_t value, int last) {
    int power = std::clamp(
        63 - __builtin_clzll(static_cast<uint64_t>(value) | 1), 0, last);
    double begin = static_cast<double>(INT64_C(1) << power);
    return {power, (static_cast<double>(value) - begin) / begin};
  }

  int tokens_;
  std::vector<double> points_;
};

/// Seconds of a stage, forward and backward: a transformer of `layers` with a
/// cost of starting, one by tokens and one by pairs.
inline double layersSeconds(double layers, double samples, double tokens) {
  return layers * 3 *
         (5e-5 + 2.5e-6 * samples * tokens +
          2.5e-10 * samples * tokens * tokens);
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_GRIDCOSTS_H
