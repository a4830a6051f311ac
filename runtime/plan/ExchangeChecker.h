//===- ExchangeChecker.h - Messages and exchanges between ranks -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A part of the plan verifier; see PlanVerifier.h, P9 to P11.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H
#define DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H

#include "runtime/plan/ExecutableGraph.h"

namespace dyna {

/// The instruction that a failure names first; -1 where it is about a whole
/// rank or the plan.
struct PlanPosition {
  int rank = -1;
  int instruction = -1;
};

/// Every program has passed P3 on its own. Linear in what all ranks start, but
/// for a logarithm of the groups. `failedAt` is where a failure lies, of several
/// places the first that its message names.
Status verifyExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                       PlanPosition &failedAt);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H
