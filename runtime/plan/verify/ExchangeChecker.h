//===- ExchangeChecker.h - Messages and exchanges between ranks -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A part of the plan verifier; see PlanVerifier.h, P9 to P11.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H
#define DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H

#include "runtime/plan/verify/ExchangeStarts.h"

#include <functional>
#include <string>

namespace dyna {

/// The instruction that a failure names first; -1 where it is about a whole
/// rank or the plan.
struct PlanPosition {
  int rank = -1;
  int instruction = -1;
};

/// P9 to P11. Every program has passed P3 on its own. Linear in what all ranks
/// start, but for a logarithm of the groups. `failedAt` is where a failure lies,
/// of several places the first that its message names.
Status verifyExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                       PlanPosition &failedAt);

/// P9 and P10 alone: of a phase of a step, whose starts go on in the next one.
Status compareExchanges(const ExecutableGraph &graph, const plan::Plan &plan,
                        PlanPosition &failedAt, ExchangeStarts &starts);

/// P11 of what has passed P9 and P10. `nameOf`: what a rank starts there, for
/// messages.
using NameStart =
    std::function<std::string(int rank, const ExchangeStarts::Start &)>;
Status carryOutExchanges(const ExchangeStarts &starts, const NameStart &nameOf);

/// For messages.
std::string describeAt(const ExecutableGraph &graph, const plan::Plan &plan,
                       int rank, int index);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_EXCHANGECHECKER_H
