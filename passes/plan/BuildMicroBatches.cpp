//===- BuildMicroBatches.cpp - Graphs, and mini-batches cut for them ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/PlanSteps.h"

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
    auto draft = begin(*model);
    if (!draft.isOk())
      return refuse(module, draft.status());
    sayNotes(module, draft->notes);
    return addPlan(module, *model, std::move(*draft), /*isComplete=*/false);
  }

  ::dyna::StatusOr<PlanDraft> begin(const ::dyna::Model &model) {
    DYNA_ASSIGN_OR_RETURN(auto costModel,
                          ::dyna::CostModel::open(model, costs));
    return beginPlan(model, costModel, requestOf(*this));
  }
};

} // namespace
