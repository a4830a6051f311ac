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
  Plan() = default;
  Plan(const Plan &other) : PlanBase(other) {}
  template <typename BeginningPass>
  friend ::dyna::StatusOr<MiniBatchRequest>
  mlir::dyna::requestOf(const BeginningPass &);

  void setOptions(const std::vector<std::pair<std::string, std::string>> &texts,
                  ArrayRef<int64_t> samples) {
    words.set(texts);
    lengths = samples;
  }

  void runOnOperation() override {
    if (failed(plan()))
      signalPassFailure();
  }

private:
  LogicalResult plan() {
    ModuleOp module = getOperation();
    auto request = requestOf(*this);
    if (!request.isOk())
      return refuse(module, request.status());
    FailureOr<::dyna::Model> model = modelOf(module);
    if (failed(model))
      return failure();
    auto orchestrated = findOrchestrated(module, *model);
    if (failed(orchestrated))
      return failure();
    auto step = makeStep(*orchestrated, *model, *request);
    if (!step.isOk())
      return refuse(module, step.status());
    return addStep(module, *model, *orchestrated, std::move(*step),
                   /*isComplete=*/true);
  }

  ::dyna::StatusOr<StepDraft>
  makeStep(const std::optional<Orchestrated> &orchestrated,
           const ::dyna::Model &model, const MiniBatchRequest &request) {
    DYNA_ASSIGN_OR_RETURN(auto costModel, openCosts(model, request.words.costs,
                                                    request.words.cluster));
    DYNA_ASSIGN_OR_RETURN(StepDraft step,
                          beginStep(orchestrated, model, costModel, request));
    for (StepDraft::Phase &phase : step.phases) {
      DYNA_RETURN_IF_ERROR(schedulePlan(phase.draft, costModel));
      DYNA_RETURN_IF_ERROR(orderPlan(phase.draft, costModel));
    }
    return step;
  }

  WordOptions words{*this, beginningWords};
};

} // namespace

std::unique_ptr<Pass> mlir::dyna::createPlan(
    const std::vector<std::pair<std::string, std::string>> &words,
    ArrayRef<int64_t> lengths) {
  auto pass = std::make_unique<::Plan>();
  pass->setOptions(words, lengths);
  return pass;
}
