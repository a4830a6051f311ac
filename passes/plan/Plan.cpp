//===- Plan.cpp - Graphs and plans from strategies ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/StepPhases.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_PLAN
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

struct Plan : mlir::dyna::impl::PlanBase<Plan> {
  using PlanBase::PlanBase;
  template <typename BeginningPass>
  friend MiniBatchRequest mlir::dyna::requestOf(const BeginningPass &);

  void runOnOperation() override {
    if (failed(plan()))
      signalPassFailure();
  }

private:
  LogicalResult plan() {
    ModuleOp module = getOperation();
    FailureOr<::dyna::Model> model = modelOf(module);
    if (failed(model))
      return failure();
    if (exec::OrchestrationOp orchestration = findOrchestration(module))
      return planStep(orchestration, *model);
    auto draft = makePlan(*model);
    if (!draft.isOk())
      return refuse(module, draft.status());
    sayNotes(module, draft->notes);
    FailureOr<exec::PlanOp> op =
        addPlan(module, *model, std::move(*draft), /*isComplete=*/true);
    return failed(op) ? failure() : verifyPlan(*op, *model);
  }

  LogicalResult planStep(exec::OrchestrationOp op, const ::dyna::Model &model) {
    FailureOr<Orchestrated> orchestrated = readOrchestration(op, model);
    if (failed(orchestrated))
      return failure();
    auto step = makeStep(*orchestrated, model);
    if (!step.isOk())
      return refuse(getOperation(), step.status());
    sayNotes(getOperation(), step->notes);
    for (const StepDraft::Phase &phase : step->phases)
      sayNotes(getOperation(), phase.draft.notes);
    return addStep(getOperation(), *orchestrated, std::move(*step),
                   /*isComplete=*/true);
  }

  ::dyna::StatusOr<StepDraft> makeStep(const Orchestrated &orchestrated,
                                       const ::dyna::Model &model) {
    DYNA_ASSIGN_OR_RETURN(auto costModel, openCosts(model, costs, cluster));
    DYNA_ASSIGN_OR_RETURN(StepDraft step,
                          beginStep(orchestrated, costModel, requestOf(*this)));
    for (StepDraft::Phase &phase : step.phases) {
      DYNA_RETURN_IF_ERROR(schedulePlan(phase.draft, costModel));
      DYNA_RETURN_IF_ERROR(orderPlan(phase.draft, costModel));
    }
    return step;
  }

  ::dyna::StatusOr<PlanDraft> makePlan(const ::dyna::Model &model) {
    DYNA_ASSIGN_OR_RETURN(auto costModel, openCosts(model, costs, cluster));
    DYNA_ASSIGN_OR_RETURN(PlanDraft draft,
                          beginPlan(model, costModel, requestOf(*this)));
    DYNA_RETURN_IF_ERROR(schedulePlan(draft, costModel));
    DYNA_RETURN_IF_ERROR(orderPlan(draft, costModel));
    return draft;
  }
};

} // namespace
