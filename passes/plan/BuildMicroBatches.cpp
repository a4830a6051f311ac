//===- BuildMicroBatches.cpp - Cuts mini-batches for graphs ---------------===//
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
    if (failed(planMiniBatch(getOperation(), requestOf(*this))))
      signalPassFailure();
  }

private:
  WordOptions words{*this, beginningWords};
};

} // namespace
