//===- Pipelines.cpp - From layer functions to kernels --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Pipelines.h"

#include "codegen/cuda/Passes.h"
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

void mlir::dyna::cuda::buildLowerCudaPipeline(OpPassManager &manager) {
  manager.addPass(createConvertToCuda());
  manager.addPass(createCSEPass());
  manager.addPass(createSCFToControlFlowPass());
  manager.addPass(createConvertVectorToLLVMPass());
  manager.addPass(createConvertMathToLLVMPass());
  manager.addPass(createArithToLLVMConversionPass());
  manager.addPass(createConvertControlFlowToLLVMPass());
  manager.addPass(createReconcileUnrealizedCastsPass());
}

void mlir::dyna::cuda::registerCudaPipelines() {
  registerCUDAPasses();
  PassPipelineRegistration<>(
      "dyna-lower-cuda",
      "Plans the memory of layer functions and lowers them to host code and "
      "kernels in the LLVM dialect.",
      [](OpPassManager &manager) {
        buildMemoryPhase(manager);
        buildLowerCudaPipeline(manager);
      });
}
