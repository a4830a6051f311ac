//===- VerifiedPlan.h - A plan that passed the verifier ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Executors run only verified plans. Verification (PlanVerifier.h) takes time that
// no device should wait for. So plans are verified where they are made, ahead of the
// devices, and this type shows it. There is no other way to create one, and nothing
// changes the plan afterwards.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_VERIFIEDPLAN_H
#define DYNA_RUNTIME_PLAN_VERIFIEDPLAN_H

#include "runtime/plan/verify/PlanVerifier.h"

#include <optional>

namespace dyna {

class VerifiedPlan {
public:
  /// Verifies P1 to P11 for a mini-batch of these lengths. A failure is that of
  /// verifyPlan. The limits are those of `options`. An executor only compares each
  /// rank's region with its own arena.
  static StatusOr<VerifiedPlan> prove(const ExecutableGraph &graph,
                                      plan::Plan plan,
                                      std::vector<int64_t> lengths,
                                      const VerifyOptions &options);

  /// Verifies the part of a plan that some ranks run, P1 to P8. The whole plan was
  /// verified where it was made, and this part came over a wire or from a disk. Only
  /// these ranks can run it.
  static StatusOr<VerifiedPlan> proveRanks(const ExecutableGraph &graph,
                                           plan::Plan plan,
                                           std::vector<int> ranks,
                                           std::vector<int64_t> lengths,
                                           const VerifyOptions &options);

  const plan::Plan &plan() const { return plan_; }
  /// Returns true if it has the programs of all ranks.
  bool isWhole() const { return !ranks_; }
  /// Returns true if it is verified for `rank`.
  bool covers(int rank) const;
  /// Tokens of each sample of the mini-batch that it was verified for.
  const std::vector<int64_t> &lengths() const { return lengths_; }

private:
  /// Creates plans without verification. One test uses it to run plans that the
  /// verifier refuses.
  friend struct UnprovenPlan;
  /// Verifies the phases of a step.
  friend class VerifiedStep;
  VerifiedPlan(plan::Plan plan, std::vector<int64_t> lengths)
      : plan_(std::move(plan)), lengths_(std::move(lengths)) {}

  plan::Plan plan_;
  std::vector<int64_t> lengths_;
  std::optional<std::vector<int>> ranks_; ///< empty: all ranks
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_VERIFIEDPLAN_H
