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
  BuildMicroBatches() = default;
  BuildMicroBatches(const BuildMicroBatches &other)
      : BuildMicroBatchesBase(other) {}
  template <typename BeginningPass>
  friend ::dyna::StatusOr<MiniBatchRequest>
  mlir::dyna::requestOf(const BeginningPass &);

  void runOnOperation() override {
    if (failed(build()))
      signalPassFailure();
  }

private:
  LogicalResult build() {
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
    auto step = begin(*orchestrated, *model, *request);
    if (!step.isOk())
      return refuse(module, step.status());
    return addStep(module, *model, *orchestrated, std::move(*step),
                   /*isComplete=*/false);
  }

  ::dyna::StatusOr<StepDraft>
  begin(const std::optional<Orchestrated> &orchestrated,
        const ::dyna::Model &model, const MiniBatchRequest &request) {
    DYNA_ASSIGN_OR_RETURN(auto costModel, openCosts(model, request.words.costs,
                                                    request.words.cluster));
    return beginStep(orchestrated, model, costModel, request);
  }

  WordOptions words{*this, beginningWords};
};

} // namespace
