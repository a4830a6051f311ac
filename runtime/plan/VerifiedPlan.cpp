//===- VerifiedPlan.cpp - A plan with its proof ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/VerifiedPlan.h"

namespace dyna {

StatusOr<VerifiedPlan> VerifiedPlan::prove(const ExecutableGraph &graph,
                                           plan::Plan plan,
                                           std::vector<int64_t> lengths,
                                           const VerifyOptions &options) {
  DYNA_RETURN_IF_ERROR(verifyPlan(graph, plan, lengths, options));
  return VerifiedPlan(std::move(plan), std::move(lengths));
}

} // namespace dyna
