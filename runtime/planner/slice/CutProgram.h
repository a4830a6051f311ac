//===- CutProgram.h - Finds the best cuts below caps ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_CUTPROGRAM_H
#define DYNA_RUNTIME_PLANNER_SLICE_CUTPROGRAM_H

#include "runtime/planner/slice/SliceProblem.h"

#include <algorithm>

namespace dyna {

/// Upper limits for each slice and bundle, in seconds.
struct SliceCaps {
  double forward = std::numeric_limits<double>::infinity();
  double backward = std::numeric_limits<double>::infinity();
  double total = std::numeric_limits<double>::infinity();

  bool allow(double f, double b) const {
    return f <= forward && b <= backward && f + b <= total;
  }
};

/// Cuts of all samples below some caps.
struct CappedCuts {
  /// The minimum, by default in seconds. Infinite if there are no cuts.
  double sum = std::numeric_limits<double>::infinity();
  double largestForward = 0, largestBackward = 0;

  bool exist() const { return sum < std::numeric_limits<double>::infinity(); }
  void note(double f, double b) {
    largestForward = std::max(largestForward, f);
    largestBackward = std::max(largestBackward, b);
  }
};

/// Solves the problem for given caps.
class CutProgram {
public:
  virtual ~CutProgram() = default;

  /// Finds the cuts with the smallest sum of seconds below the caps. May find none if
  /// that sum is `mostSeconds` or more.
  virtual CappedCuts solve(const SliceCaps &caps, double mostSeconds) = 0;
  /// Says that no caps from now on are above these ones.
  virtual void narrow(const SliceCaps &caps) = 0;
  /// Returns the cuts and bundles of the last `solve`, which found some.
  virtual SlicePlan plan() const = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_CUTPROGRAM_H
