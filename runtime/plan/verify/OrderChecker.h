//===- OrderChecker.h - Verifies the order on one rank (P3 to P5) ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This is a part of the plan verifier; see PlanVerifier.h.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_ORDERCHECKER_H
#define DYNA_RUNTIME_PLAN_ORDERCHECKER_H

#include "runtime/plan/graph/RankView.h"
#include "runtime/plan/verify/UpdateRules.h"

#include <memory>
#include <vector>

namespace dyna {

/// Follows every micro-batch of a rank's replica through the layers of its
/// stage, and the parameters through reduction, norm and update.
class OrderChecker {
public:
  /// Options of the same names in VerifyOptions.
  struct Part {
    bool isPhase = false, isSwitched = false;
    UpdateRules updates = {};
  };
  /// `view` is the rank's. `microBatches` are those of its replica, in order.
  /// Both must outlive the checker.
  static std::unique_ptr<OrderChecker>
  create(const RankView &view, const std::vector<int> &microBatches, Part part);
  virtual ~OrderChecker() = default;

  virtual Status step(const plan::Instruction &i) = 0;
  virtual Status finish() const = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_ORDERCHECKER_H
