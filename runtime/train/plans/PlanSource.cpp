//===- PlanSource.cpp - Gives every step its plan -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanSource.h"

#include "runtime/executor/step/Staging.h"
#include "runtime/train/session/Prediction.h"

namespace dyna {
namespace {

Status predict(const Session &session, PlannedStep &step) {
  DYNA_ASSIGN_OR_RETURN(step.predicted, predictStep(session, *step.plan));
  step.predictedSeconds = step.predicted ? step.predicted->seconds : 0;
  return Status::ok();
}

/// Plans in this process, from the mini-batch alone.
class PlannedHere : public PlanSource {
public:
  explicit PlannedHere(const Session &session) : session_(session) {}

  Status plan(PlannedStep &step) override {
    DYNA_ASSIGN_OR_RETURN(step.plan,
                          session_.planner->plan(step.batch.lengths(),
                                                 countTargets(step.batch),
                                                 /*trains=*/true, step.update));
    return predict(session_, step);
  }

private:
  const Session &session_;
};

} // namespace

Status takeStep(const Session &session, plan::StepPlan plan, bool mustUpdate,
                PlannedStep &step) {
  DYNA_ASSIGN_OR_RETURN(
      step.plan, session.planner->verify(std::move(plan), step.batch.lengths(),
                                         countTargets(step.batch), mustUpdate));
  return predict(session, step);
}

std::unique_ptr<PlanSource> planHere(const Session &session) {
  return std::make_unique<PlannedHere>(session);
}

} // namespace dyna
