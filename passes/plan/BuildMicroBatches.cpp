//===- BuildMicroBatches.cpp - Graphs, and mini-batches cut for them ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/StepPhases.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_BUILDMICROBATCHES
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

struct BuildMicroBatches
    : mlir::dyna::impl::BuildMicroBatchesBase<BuildMicroBatches> {
  using BuildMicroBatchesBase::BuildMicroBatchesBase;
  template <typename BeginningPass>
  friend MiniBatchRequest mlir::dyna::requestOf(const BeginningPass &);

  void runOnOperation() override {
    if (failed(build()))
      signalPassFailure();
  }

private:
  LogicalResult build() {
    ModuleOp module = getOperation();
    FailureOr<::dyna::Model> model = modelOf(module);
    if (failed(model))
      return failure();
    if (exec::OrchestrationOp orchestration = findOrchestration(module))
      return buildStep(orchestration, *model);
    auto draft = begin(*model);
    if (!draft.isOk())
      return refuse(module, draft.status());
    sayNotes(module, draft->notes);
    return addPlan(module, *model, std::move(*draft), /*isComplete=*/false);
  }

  LogicalResult buildStep(exec::OrchestrationOp op,
                          const ::dyna::Model &model) {
    FailureOr<Orchestrated> orchestrated = readOrchestration(op, model);
    if (failed(orchestrated))
      return failure();
    auto costModel = openCosts(model, costs, cluster);
    if (!costModel.isOk())
      return refuse(getOperation(), costModel.status());
    auto step = beginStep(*orchestrated, *costModel, requestOf(*this));
    if (!step.isOk())
      return refuse(getOperation(), step.status());
    sayNotes(getOperation(), step->notes);
    for (const StepDraft::Phase &phase : step->phases)
      sayNotes(getOperation(), phase.draft.notes);
    return addStep(getOperation(), *orchestrated, std::move(*step),
                   /*isComplete=*/false);
  }

  ::dyna::StatusOr<PlanDraft> begin(const ::dyna::Model &model) {
    DYNA_ASSIGN_OR_RETURN(auto costModel, openCosts(model, costs, cluster));
    return beginPlan(model, costModel, requestOf(*this));
  }
};

} // namespace
