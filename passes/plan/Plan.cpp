//===- Plan.cpp - Makes graphs and plans from strategies ------------------===//
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
    if (failed(planMiniBatch(getOperation(), requestOf(*this), complete)))
      signalPassFailure();
  }

private:
  static ::dyna::Status complete(StepDraft &step,
                                 const ::dyna::CostModel &costs) {
    for (StepDraft::Phase &phase : step.phases) {
      DYNA_RETURN_IF_ERROR(schedulePlan(phase.draft, costs));
      DYNA_RETURN_IF_ERROR(orderPlan(phase.draft, costs));
    }
    return ::dyna::Status::ok();
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
