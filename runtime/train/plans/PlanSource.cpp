//===- PlanSource.cpp - Where the plans of a run come from ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/plans/PlanSource.h"

#include "runtime/base/Text.h"
#include "runtime/executor/Staging.h"
#include "runtime/plan/model/Bytes.h"
#include "runtime/plan/program/PlanFile.h"
#include "runtime/train/session/Prediction.h"

namespace dyna {
namespace {

Status predict(const Session &session, PlannedStep &step) {
  if (step.phases) {
    DYNA_ASSIGN_OR_RETURN(step.predicted, predictPhases(session, *step.phases));
  } else {
    DYNA_ASSIGN_OR_RETURN(
        step.predicted,
        predictStep(session, step.plan->plan(), step.batch.lengths()));
  }
  step.predictedSeconds = step.predicted ? step.predicted->seconds : 0;
  return Status::ok();
}

/// Made in this process, from the mini-batch alone.
class PlannedHere : public PlanSource {
public:
  explicit PlannedHere(const Session &session) : session_(session) {}

  Status plan(PlannedStep &step) override {
    if (session_.ranged)
      return planPhases(step);
    PlanOptions options = session_.home.options;
    options.update = step.update;
    DYNA_ASSIGN_OR_RETURN(plan::Plan plan, session_.home.planner->training(
                                               step.batch.lengths(),
                                               step.batch.targets, options));
    return takeStep(session_, stepOf(std::move(plan)), step.update, step);
  }

private:
  Status planPhases(PlannedStep &step) const {
    DYNA_ASSIGN_OR_RETURN(step.phases,
                          session_.ranged->plan(step.batch, true, step.update));
    return predict(session_, step);
  }

  const Session &session_;
};

} // namespace

UpdateRules updateRules(const Session &session, bool mustUpdate) {
  return {/*needsNorms=*/!session.options.noGradientNorm, mustUpdate};
}

StatusOr<VerifiedPlan> provePlan(const Session &session, plan::Plan plan,
                                 const MiniBatch &batch, bool mustUpdate) {
  VerifyOptions options = {maxBlockBytes, -1, countTargets(batch)};
  options.updates = updateRules(session, mustUpdate);
  DYNA_ASSIGN_OR_RETURN(VerifiedPlan proven,
                        VerifiedPlan::prove(*session.home.graph,
                                            std::move(plan), batch.lengths(),
                                            options));
  // Each rank has a region of its own size.
  const std::vector<int64_t> &limits = session.home.options.dynamicLimits;
  for (size_t rank = 0; rank < limits.size(); ++rank)
    if (int64_t bytes = proven.plan().ranks[rank].dynamicBytes;
        bytes > limits[rank])
      return Status::invalidArgument(
          formatText("plan: rank %d needs %d bytes, but the limit is %d (P8)",
                     rank, bytes, limits[rank]));
  return proven;
}

Status takeStep(const Session &session, plan::StepPlan plan, bool mustUpdate,
                PlannedStep &step) {
  if (session.ranged) {
    DYNA_ASSIGN_OR_RETURN(
        step.phases, session.ranged->prove(std::move(plan), step.batch,
                                           updateRules(session, mustUpdate)));
    return predict(session, step);
  }
  if (plan.phaseCount() != 1)
    return Status::invalidArgument(formatText(
        "it has %d phases, but this run has one strategy", plan.phaseCount()));
  DYNA_ASSIGN_OR_RETURN(step.plan,
                        provePlan(session, std::move(plan.phases.front().plan),
                                  step.batch, mustUpdate));
  return predict(session, step);
}

std::unique_ptr<PlanSource> planHere(const Session &session) {
  return std::make_unique<PlannedHere>(session);
}

} // namespace dyna
