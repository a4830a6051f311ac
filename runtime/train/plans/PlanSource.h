//===- PlanSource.h - Where the plans of a run come from --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PLANSOURCE_H
#define DYNA_RUNTIME_TRAIN_PLANSOURCE_H

#include "runtime/train/plans/PlanAhead.h"
#include "runtime/train/session/Session.h"

namespace dyna {

/// Gives every training step its plan, proven for the step's mini-batch.
class PlanSource {
public:
  virtual ~PlanSource() = default;
  /// Before any plan: of all steps that will be asked for, in whatever order, the
  /// first.
  virtual void startAt(int64_t step) {}
  /// Sets the plan of a step that was read (its number, mini-batch and whether it
  /// updates) and what it is predicted to take. Called from several threads at
  /// once.
  virtual Status plan(PlannedStep &step) = 0;
  /// No plan is wanted any more: whoever waits for one fails soon.
  virtual void stop() {}
};

/// Makes them in this process, from the mini-batch alone. `session` must outlive
/// it.
std::unique_ptr<PlanSource> planHere(const Session &session);

/// Verifies the plan of a step, sets it and predicts its seconds. With `mustUpdate` a
/// plan that leaves its gradients is refused.
Status takeStep(const Session &session, plan::StepPlan plan, bool mustUpdate,
                PlannedStep &step);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PLANSOURCE_H
