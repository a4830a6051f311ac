//===- ExchangeChecker.h - Verifies exchanges between ranks ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is a part of the plan verifier; see PlanVerifier.h, P9 to P11.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H
#define DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H

#include "runtime/plan/verify/ExchangeStarts.h"

#include <functional>
#include <string>

namespace dyna {

/// The instruction that an error names first; -1 if the error is about a whole
/// rank or the plan.
struct PlanPosition {
  int rank = -1;
  int instruction = -1;
};

/// Verifies P9 to P11. Every program must have passed P3. Linear in the starts
/// of all ranks, times a logarithm of the groups. `failedAt` is the place of a
/// failure; of several places it is the first in the message.
Status verifyExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                       PlanPosition &failedAt);

/// Verifies P9 and P10 alone, for a phase of a step whose exchanges continue in
/// the next one.
Status compareExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                        PlanPosition &failedAt, ExchangeStarts &starts);

/// Verifies P11 after P9 and P10. `nameOf` names what a rank starts there, for
/// messages.
using NameStart =
    std::function<std::string(int rank, const ExchangeStarts::Start &)>;
Status carryOutExchanges(const ExchangeStarts &starts, const NameStart &nameOf);

/// Describes an instruction for messages.
std::string describeAt(const ExecutableGraph &graph, const plan::Plan &plan,
                       int rank, int index);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H
