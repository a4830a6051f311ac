//===- VerifiedPlan.cpp - A plan with its proof ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/verify/VerifiedPlan.h"

#include <algorithm>

namespace dyna {

StatusOr<VerifiedPlan> VerifiedPlan::prove(const ExecutableGraph &graph,
                                           plan::Plan plan,
                                           std::vector<int64_t> lengths,
                                           const VerifyOptions &options) {
  DYNA_RETURN_IF_ERROR(verifyPlan(graph, plan, lengths, options));
  return VerifiedPlan(std::move(plan), std::move(lengths));
}

StatusOr<VerifiedPlan> VerifiedPlan::proveRanks(const ExecutableGraph &graph,
                                                plan::Plan plan,
                                                std::vector<int> ranks,
                                                std::vector<int64_t> lengths,
                                                const VerifyOptions &options) {
  DYNA_RETURN_IF_ERROR(verifyRanks(graph, plan, ranks, lengths, options));
  VerifiedPlan proven(std::move(plan), std::move(lengths));
  proven.ranks_ = std::move(ranks);
  return proven;
}

bool VerifiedPlan::covers(int rank) const {
  return !ranks_ ||
         std::find(ranks_->begin(), ranks_->end(), rank) != ranks_->end();
}

} // namespace dyna
