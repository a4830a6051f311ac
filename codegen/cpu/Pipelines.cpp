//===- Pipelines.cpp - From layer functions to the LLVM dialect -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Pipelines.h"

#include "codegen/cpu/Passes.h"
#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/ReconcileUnrealizedCasts/ReconcileUnrealizedCasts.h"
#include "mlir/Conversion/SCFToControlFlow/SCFToControlFlow.h"
#include "mlir/Conversion/VectorToLLVM/ConvertVectorToLLVMPass.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipelines.h"

using namespace mlir;

void mlir::dyna::cpu::buildLowerCpuPipeline(OpPassManager &manager,
                                            const LowerCpuOptions &options) {
  ConvertToCpuOptions convert;
  convert.matmul = options.matmul;
  convert.vectorBits = options.vectorBits;
  convert.streamingBytes = options.streamingBytes;
  manager.addPass(createConvertToCpu(convert));
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void mlir::dyna::cpu::registerCpuPipelines() {
  registerCPUPasses();
  PassPipelineRegistration<LowerCpuOptions>(
      "dyna-lower-cpu",
      "Plans the memory of layer functions and lowers them to the LLVM "
      "dialect.",
      [](OpPassManager &manager, const LowerCpuOptions &options) {
        buildMemoryPhase(manager);
        buildLowerCpuPipeline(manager, options);
      });
}
