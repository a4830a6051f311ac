//===- PlanSource.h - Gives every step its plan -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANSOURCE_H
#define DYNA_RUNTIME_TRAIN_PLANSOURCE_H

#include "runtime/train/plans/PlanAhead.h"
#include "runtime/train/session/Session.h"

namespace dyna {

/// Gives every training step its plan, verified for the step's mini-batch.
class PlanSource {
public:
  virtual ~PlanSource() = default;
  /// Sets the first of all steps that will be asked for, in any order. Called
  /// before any plan.
  virtual void startAt(int64_t step) {}
  /// Sets the plan of a step that was read, and its predicted seconds. The step
  /// has its number, its mini-batch and whether it updates. Called by several
  /// threads at once.
  virtual Status plan(PlannedStep &step) = 0;
  /// Tells that no plan is wanted any more. Threads that wait for one fail
  /// soon.
  virtual void stop() {}
};

/// Returns a source that plans in this process, from the mini-batch alone.
/// `session` must outlive it.
std::unique_ptr<PlanSource> planHere(const Session &session);

/// Verifies the plan of a step, sets it and predicts its seconds. With
/// `mustUpdate`, refuses a plan that does not apply its gradients.
Status takeStep(const Session &session, plan::StepPlan plan, bool mustUpdate,
                PlannedStep &step);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANSOURCE_H
