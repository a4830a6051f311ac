//===- Agreement.h - Checks that processes of one job agree -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A launcher may start processes of other binaries, with other flags, or with
// other data on their machines. Each would make its own plans, and the job
// would train a different model or hang. So processes compare what must be
// equal before anything runs.
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

/// Fails on every rank if a fact differs between ranks, and names the fact. All
/// ranks call it, with facts of the same names in one order.
Status checkAgreement(HostExchange &host, const std::vector<SharedFact> &facts);

/// Returns the smallest number that any rank gives. All ranks call it.
StatusOr<int64_t> agreeOnLeast(HostExchange &host, int64_t own);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_AGREEMENT_H
