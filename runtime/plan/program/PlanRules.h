//===- PlanRules.h - Names the verifier's rules in errors -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Only the parts of the plan verifier use it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_PLANRULES_H
#define DYNA_RUNTIME_PLAN_PLANRULES_H

#include "runtime/base/error/Status.h"

namespace dyna {

/// Rules P1 to P14 (PlanVerifier.h, StepVerifier.h).
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

/// Returns the error "plan: what (P7)".
inline Status refuse(PlanRule rule, const std::string &what) {
  return Status::invalidArgument("plan: " + what + " (P" +
                                 std::to_string(static_cast<int>(rule)) + ")");
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_PLANRULES_H
