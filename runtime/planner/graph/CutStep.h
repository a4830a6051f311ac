//===- CutStep.h - Chooses micro-batches by complete plans ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CUTSTEP_H
#define DYNA_RUNTIME_PLANNER_CUTSTEP_H

#include "runtime/planner/graph/PlanCandidates.h"

namespace dyna {

/// Cuts a mini-batch into micro-batches. `lengths` and `targetTokens` are those of
/// Planner::training. If the choice of the cut depends on complete plans, the result is
/// one. Micro-batches become smaller if stages mostly wait, because memory is scarce, and
/// if smaller ones are faster.
StatusOr<PlanCut> cutStep(const PlanWriter &writer,
                          const std::vector<int64_t> &lengths,
                          int64_t targetTokens, const PlanOptions &options,
                          bool trains);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CUTSTEP_H
