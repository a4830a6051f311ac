//===- PaddedCosts.h - Computes costs of padded micro-batches ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PADDEDCOSTS_H
#define DYNA_RUNTIME_PLANNER_PADDEDCOSTS_H

#include "runtime/planner/cut/OrderSamples.h"

#include <cstdint>
#include <functional>

namespace dyna {

/// A padded micro-batch: all samples as long as the longest, in both keys.
struct PaddedShape {
  int64_t samples = 0;
  SampleLength longest;
};

/// Time and memory of a padded micro-batch. Both functions are pure and never
/// negative. They are *monotone*: another sample or a longer one never lowers
/// them. The cut compares all values it asks for, and refuses those that
/// contradict this. It cannot see a contradiction in values it did not ask for.
struct PaddedCosts {
  /// Seconds on the slowest stage, forward and backward. Finite.
  std::function<double(const PaddedShape &)> seconds;
  /// Bytes that it keeps from forward to backward, on the stage where these
  /// are most beside their limit. Empty: memory is not limited.
  std::function<int64_t(const PaddedShape &)> bytes;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PADDEDCOSTS_H
