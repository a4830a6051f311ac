//===- SliceCases.h - Random slicing problems, and all their plans --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_SLICE_SLICECASES_H
#define DYNA_TEST_RUNTIME_PLANNER_SLICE_SLICECASES_H

#include "runtime/planner/slice/SliceProblem.h"
#include "test/runtime/planner/Draw.h"

#include <functional>

namespace dyna {

/// Sums of a part of a plan, added as `SliceProblem.h` says.
struct SliceSums {
  double sum = 0, forward = 0, backward = 0, total = 0;
  int64_t bytes = 0;

  void add(const SliceCost &cost) {
    sum += cost.forward + cost.backward;
    forward = std::max(forward, cost.forward);
    backward = std::max(backward, cost.backward);
    total = std::max(total, cost.forward + cost.backward);
    bytes += cost.bytes;
  }
  double objective(const SliceOptions &options) const {
    return sum + (options.stages - 1) *
                     (options.joinsDirections ? total : forward + backward);
  }
};

/// How costs of slices are drawn.
enum class CostKind {
  Integers, ///< Small whole numbers: many ties, and sums that are exact.
  Reals,    ///< Any numbers, not monotone.
  Monotone, ///< Longer slices with more context cost more.
  Steps     ///< Flat up to some tokens, as small slices are on a device.
};

/// Costs that are drawn by their shape, so that they need no table.
SliceCosts drawCosts(uint64_t seed, CostKind kind, int modes);

/// Sums of one way to run some samples.
using Visit = std::function<void(const SliceSums &)>;

/// Visits every plan of the problem within the limits of slices: all cuts, all modes,
/// all ways to join equal samples, all modes of bundles.
void visitPlans(const SliceProblem &problem, const Visit &visit);

/// The smallest objective of all plans within all limits; infinite without one.
double bestOfAllPlans(const SliceProblem &problem);

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_SLICE_SLICECASES_H
