//===- ConvertToCpu.cpp - Converts layer functions to CPU code --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Passes.h"

#include "codegen/cpu/CpuLowering.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/Requirements.h"
#include "passes/memory/value/Target.h"

namespace mlir::dyna::cpu {
#define GEN_PASS_DEF_CONVERTTOCPU
#include "codegen/cpu/Passes.h.inc"
} // namespace mlir::dyna::cpu

using namespace mlir;
using namespace mlir::dyna;
using namespace mlir::dyna::cpu;

namespace {
class ConvertToCpuPass : public cpu::impl::ConvertToCpuBase<ConvertToCpuPass> {
public:
  using ConvertToCpuBase::ConvertToCpuBase;

  void runOnOperation() override {
    FailureOr<LoweringOptions> options = checkOptions();
    if (failed(options) || failed(requireFunctions(getOperation())) ||
        failed(requireTarget(getOperation(), TargetName::Cpu)))
      return signalPassFailure();
    CpuLowering module(getOperation(), *options);
    for (auto function : llvm::to_vector(getOperation().getOps<FunctionOp>()))
      if (failed(FunctionLowering(module, function).run()))
        return signalPassFailure();
    for (Operation &op : llvm::make_early_inc_range(*getOperation().getBody()))
      if (isa<FunctionOp, LayerOp, ModelOp, ParameterOp>(op))
        op.erase();
  }

private:
  FailureOr<LoweringOptions> checkOptions() {
    LoweringOptions options;
    options.vectorBits = vectorBits;
    options.streamingBytes = streamingBytes;
    options.generatedMatmul = matmul == "generated";
    if (matmul != "generated" && matmul != "library")
      return getOperation().emitError(
                 "expects matmul 'library' or 'generated', "
                 "but got '")
             << matmul << "'";
    if (vectorBits != 128 && vectorBits != 256 && vectorBits != 512)
      return getOperation().emitError(
                 "expects vector-bits 128, 256 or 512, but got ")
             << vectorBits.getValue();
    if (streamingBytes < 0)
      return getOperation().emitError("expects streaming-bytes not to be "
                                      "negative, but got ")
             << streamingBytes.getValue();
    return options;
  }
};
} // namespace
