//===- CompareSlices.h - Compares slices with whole samples -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_COMPARESLICES_H
#define DYNA_RUNTIME_PLANNER_COMPARESLICES_H

#include "runtime/planner/graph/PlanCandidates.h"

namespace dyna {

/// Returns the faster one of a cut into whole micro-batches and its slices
/// (`fasterSlices`), as a complete plan by the simulator. `options` has no slices. If
/// nothing is faster, returns `whole`, so that its plan is the one without slices, byte
/// for byte.
///
/// Programs of slices are written and simulated, the shortest one is placed, and then
/// the next one if that does not fit. Whole micro-batches are planned only if their
/// lower bound (PipelineBounds.h) is below the time of the slices.
StatusOr<PlanCut> compareSlices(const PlanWriter &writer, PlanCut whole,
                                const PlanOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_COMPARESLICES_H
