//===- TurnChecker.h - Verifies that turns end ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is a part of the plan verifier; see PlanVerifier.h, P11.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_TURNCHECKER_H
#define DYNA_RUNTIME_PLAN_TURNCHECKER_H

#include "runtime/plan/verify/ExchangeChecker.h"

namespace dyna {

/// Verifies P11 for ranks that share devices (Turns.h). All starts of a rank must end one
/// after another, as in `carryOutExchanges`, while items wait for their turns. P9 and P10
/// must hold. O(instructions log instructions). `failedAt` is the place of a failure.
Status verifyTurns(const ExecutableGraph &graph, const plan::Plan &plan,
                   PlanPosition &failedAt);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_TURNCHECKER_H
