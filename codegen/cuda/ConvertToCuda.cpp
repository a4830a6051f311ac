//===- ConvertToCuda.cpp - Converts layer functions to kernels ------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Passes.h"

#include "codegen/cuda/CudaLowering.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/Requirements.h"
#include "passes/memory/value/Target.h"

namespace mlir::dyna::cuda {
#define GEN_PASS_DEF_CONVERTTOCUDA
#include "codegen/cuda/Passes.h.inc"
} // namespace mlir::dyna::cuda

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cuda;

namespace {
class ConvertToCudaPass
    : public cuda::impl::ConvertToCudaBase<ConvertToCudaPass> {
public:
  using ConvertToCudaBase::ConvertToCudaBase;

  void runOnOperation() override {
    if (failed(requireFunctions(getOperation())) ||
        failed(requireTarget(getOperation(), TargetName::Cuda)))
      return signalPassFailure();
    CudaLowering module(getOperation());
    for (auto function : llvm::to_vector(getOperation().getOps<FunctionOp>()))
      if (failed(FunctionLowering(module, function).run()))
        return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*getOperation().getBody()))
      if (isa<FunctionOp, LayerOp, ModelOp, ParameterOp>(op))
        op.erase();
    // No function with a plan is left, so the module needs no target any more.
    kTarget.removeFrom(getOperation());
  }
};
} // namespace
