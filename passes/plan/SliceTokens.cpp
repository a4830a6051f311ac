//===- SliceTokens.cpp - Cuts micro-batches into token slices -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/PlanSteps.h"

namespace mlir::dyna {
#define GEN_PASS_DEF_SLICETOKENS
#include "passes/plan/Passes.h.inc"
} // namespace mlir::dyna

using namespace mlir;
using namespace mlir::dyna;

namespace {

struct SliceTokens : mlir::dyna::impl::SliceTokensBase<SliceTokens> {
  using SliceTokensBase::SliceTokensBase;
  SliceTokens() = default;
  SliceTokens(const SliceTokens &other) : SliceTokensBase(other) {}

  void runOnOperation() override {
    if (failed(sliceAll()))
      signalPassFailure();
  }

private:
  LogicalResult sliceAll() {
    ModuleOp module = getOperation();
    FailureOr<PlanInputs> inputs = openInputs(module, words);
    if (failed(inputs))
      return failure();
    if (inputs->words.slices.empty())
      return module.emitError("slices are cut as 'slices' says: give it, as in "
                              "--dyna-slice-tokens=slices=4");
    SmallVector<exec::PlanOp> drafts;
    for (auto plan : module.getOps<exec::PlanOp>())
      if (plan.isDraft() && !plan.hasPrograms())
        drafts.push_back(plan);
    if (drafts.empty())
      return module.emitError("has no exec.plan that is a draft of whole "
                              "micro-batches; run --dyna-build-micro-batches "
                              "before this, and --dyna-schedule behind it");
    for (exec::PlanOp draft : drafts)
      if (failed(slice(draft, *inputs)))
        return failure();
    return success();
  }

  LogicalResult slice(exec::PlanOp op, const PlanInputs &inputs) {
    FailureOr<PlanDraft> draft = readDraft(op, *inputs.model);
    if (failed(draft))
      return failure();
    ::dyna::PlanOptions &options = draft->options;
    // `words` has checked the text.
    options.slices = *::dyna::parseSlices(inputs.words.slices);
    ::dyna::Planner planner(draft->graph, inputs.costs);
    auto sliced =
        planner.slice(std::move(draft->plan), options, !draft->evaluate);
    if (!sliced.isOk())
      return refuse(op, sliced.status());
    draft->plan = *std::move(sliced);
    return replacePlan(op, std::move(*draft), /*isComplete=*/false);
  }

  WordOptions words{
      *this,
      {::dyna::Word::Slices, ::dyna::Word::Costs, ::dyna::Word::Cluster}};
};

} // namespace
