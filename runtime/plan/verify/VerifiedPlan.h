//===- VerifiedPlan.h - A plan with its proof -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Executors run nothing else. The proof (PlanVerifier.h) takes time that no
// device should wait for, so whoever makes plans ahead of the devices also
// proves them there, and the type says that it was done. There is no other way
// to one, and nothing changes the plan afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_VERIFIEDPLAN_H
#define DYNA_RUNTIME_PLAN_VERIFIEDPLAN_H

#include "runtime/plan/verify/PlanVerifier.h"

#include <optional>

namespace dyna {

class VerifiedPlan {
public:
  /// Proves all of P1 to P11 for a mini-batch of these lengths; the failure is
  /// verifyPlan's. The limits of `options` count: who runs the plan only
  /// compares each rank's region with its own arena.
  static StatusOr<VerifiedPlan> prove(const ExecutableGraph &graph,
                                      plan::Plan plan,
                                      std::vector<int64_t> lengths,
                                      const VerifyOptions &options);

  /// The part of a plan that some ranks run. Its maker has proven the whole; what
  /// came over wires and disks since is proven for these ranks, P1 to P8, and no
  /// other rank can run it.
  static StatusOr<VerifiedPlan> proveRanks(const ExecutableGraph &graph,
                                           plan::Plan plan,
                                           std::vector<int> ranks,
                                           std::vector<int64_t> lengths,
                                           const VerifyOptions &options);

  const plan::Plan &plan() const { return plan_; }
  /// Whether it has the programs of all ranks.
  bool isWhole() const { return !ranks_; }
  /// Whether it is proven for a rank.
  bool covers(int rank) const;
  /// Tokens of each sample of the mini-batch that it was proven for.
  const std::vector<int64_t> &lengths() const { return lengths_; }

private:
  /// Of a test alone, which shows what becomes of plans that are refused.
  friend struct UnprovenPlan;
  /// Proves the phases of a step.
  friend class VerifiedStep;
  VerifiedPlan(plan::Plan plan, std::vector<int64_t> lengths)
      : plan_(std::move(plan)), lengths_(std::move(lengths)) {}

  plan::Plan plan_;
  std::vector<int64_t> lengths_;
  std::optional<std::vector<int>> ranks_; ///< nothing: all of them
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_VERIFIEDPLAN_H
