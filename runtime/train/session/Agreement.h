//===- Agreement.h - Processes of one job do the same -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A launcher starts processes that may be of other binaries, with other flags,
// or find other data on their machines. Each would make its own plans, and the
// job would train something else, or hang. So they compare, before anything
// runs, what must be alike.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_AGREEMENT_H
#define DYNA_RUNTIME_TRAIN_AGREEMENT_H

#include "runtime/transport/HostExchange.h"

#include <string>
#include <vector>

namespace dyna {

struct SharedFact {
  std::string name; ///< "strategy", "--seed"
  std::string value;
};

/// Fails on every rank if a fact has not the same value on all of them, and
/// says which. All ranks call it, with facts of the same names in one order.
Status checkAgreement(HostExchange &host, const std::vector<SharedFact> &facts);

/// The smallest number that any rank says. All ranks call it.
StatusOr<int64_t> agreeOnLeast(HostExchange &host, int64_t own);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_AGREEMENT_H
