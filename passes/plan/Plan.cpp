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
    auto orchestrated = findOrchestrated(module, *model);
    if (failed(orchestrated))
      return failure();
    auto step = makeStep(*orchestrated, *model);
    if (!step.isOk())
      return refuse(module, step.status());
    return addStep(module, *model, *orchestrated, std::move(*step),
                   /*isComplete=*/true);
  }

  ::dyna::StatusOr<StepDraft>
  makeStep(const std::optional<Orchestrated> &orchestrated,
           const ::dyna::Model &model) {
    DYNA_ASSIGN_OR_RETURN(auto costModel, openCosts(model, costs, cluster));
    DYNA_ASSIGN_OR_RETURN(
        StepDraft step,
        beginStep(orchestrated, model, costModel, requestOf(*this)));
    for (StepDraft::Phase &phase : step.phases) {
      DYNA_RETURN_IF_ERROR(schedulePlan(phase.draft, costModel));
      DYNA_RETURN_IF_ERROR(orderPlan(phase.draft, costModel));
    }
    return step;
  }
};

} // namespace
