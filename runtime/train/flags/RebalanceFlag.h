//===- RebalanceFlag.h - Parses the value of --rebalance --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The value of --rebalance: a policy, followed by a number for how easily
// layers move.
//
//     time
//     diffusion,every=10,margin=1,least=0.02,slower=0.05
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_REBALANCEFLAG_H
#define DYNA_RUNTIME_TRAIN_REBALANCEFLAG_H

#include "runtime/elastic/balance/BalancePolicies.h"
#include "runtime/elastic/decide/MoveDecider.h"

#include <string>

namespace dyna {

struct RebalanceFlag {
  BalancePolicy policy = BalancePolicy::Time;
  MoveOptions options;
  MoveTest test;
};

/// Parses the value of --rebalance. Fails with InvalidArgument if the policy is
/// unknown or not available in runs, or if a number is out of range.
StatusOr<RebalanceFlag> parseRebalanceFlag(const std::string &text);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_REBALANCEFLAG_H
