//===- UpdateRules.h - Describes demands on updates -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_UPDATERULES_H
#define DYNA_RUNTIME_PLAN_UPDATERULES_H

namespace dyna {

/// Demands on the updates of a plan that trains.
struct UpdateRules {
  /// Gradient norms are known before the first update.
  bool needsNorms = true;
  /// The plan applies its gradients; they are not left for a later plan.
  bool mustUpdate = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_UPDATERULES_H
