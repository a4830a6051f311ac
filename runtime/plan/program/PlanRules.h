//===- PlanRules.h - Refusals that name their rule --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Shared by the parts of the plan verifier; not for others.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLANRULES_H
#define DYNA_RUNTIME_PLAN_PLANRULES_H

#include "runtime/base/Status.h"

namespace dyna {

/// Those of PlanVerifier.h, by their numbers.
enum class PlanRule {
  Made = 1,
  Covered,
  Ordered,
  Recomputed,
  Updated,
  There,
  Apart,
  Fits,
  Matched,
  Agreed,
  Ends,
  Switched,
  Arrived,
  Returned
};

/// "plan: what (P7)".
inline Status refuse(PlanRule rule, const std::string &what) {
  return Status::invalidArgument("plan: " + what + " (P" +
                                 std::to_string(static_cast<int>(rule)) + ")");
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PLANRULES_H
