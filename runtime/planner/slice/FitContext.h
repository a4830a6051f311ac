//===- FitContext.h - Fits the paper's formula for context ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// TeraPipe (ICML'21), equation 9: a slice with i tokens after j earlier tokens takes
//
//     t(i, 0) + a0 + a1 i + a2 j + a3 i j
//
// with measured t(i, 0). The four numbers are fitted to measured costs of context. The
// paper reports an error below 2 %. Dyna takes costs from tables. The fit is for
// comparison with the paper, in reports (report/ContextReport.h); no plan uses it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_FITCONTEXT_H
#define DYNA_RUNTIME_PLANNER_SLICE_FITCONTEXT_H

#include "runtime/base/error/Status.h"

#include <array>
#include <cstdint>
#include <vector>

namespace dyna {

struct ContextPoint {
  int64_t tokens = 0;  ///< i, of the slice.
  int64_t context = 0; ///< j, before the slice.
  /// Measured: what the context adds to t(i, 0). Noise may make it negative.
  double seconds = 0;
};

struct ContextFit {
  std::array<double, 4> numbers = {0, 0, 0, 0}; ///< a0, a1, a2, a3.
  /// |fitted - measured| / measured over points with more than 0 seconds.
  double meanError = 0, largestError = 0;
  /// Square root of the mean square of fitted - measured, in seconds.
  double deviation = 0;

  double seconds(int64_t tokens, int64_t context) const {
    const auto i = static_cast<double>(tokens),
               j = static_cast<double>(context);
    return numbers[0] + numbers[1] * i + numbers[2] * j + numbers[3] * i * j;
  }
};

/// Fits the four numbers with the least sum of squared errors. Fails with
/// InvalidArgument if tokens are negative or seconds not finite, or if the points do not
/// determine four numbers. At least two different i at each of two different j do.
/// O(points).
StatusOr<ContextFit> fitContext(const std::vector<ContextPoint> &points);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_FITCONTEXT_H
