//===- LargestPlans.h - Bounds the memory of all plans ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_LARGESTPLANS_H
#define DYNA_RUNTIME_PLANNER_LARGESTPLANS_H

#include "runtime/planner/graph/PlanWriter.h"

#include <vector>

namespace dyna {

/// Returns the bytes of each rank's dynamic region that are enough for every plan with
/// these options: evaluation, casts and, if `training`, training steps.
StatusOr<std::vector<int64_t>> largestDynamicBytes(const PlanWriter &writer,
                                                   const PlanOptions &options,
                                                   bool training);
/// Returns the bytes with which some plan exists, for any lengths. It is the sequential
/// one.
StatusOr<std::vector<int64_t>> leastDynamicBytes(const PlanWriter &writer,
                                                 const PlanOptions &options,
                                                 bool training);

/// Plans the casts of the masters that the ranks of the first replicas update into the
/// compute type. Programs are empty if both types are equal.
StatusOr<plan::Plan> castPlan(const PlanWriter &writer, int replicas);
/// Plans the reduction, norm and update of gradients that are there already.
StatusOr<plan::Plan> updatePlan(const PlanWriter &writer);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_LARGESTPLANS_H
