//===- Pipelines.cpp - Lowers layer functions to kernels ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cuda/Pipelines.h"

#include "codegen/cuda/Passes.h"
#include "codegen/layers/ToLlvm.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Pipelines.h"

using namespace mlir;

void mlir::dyna::cuda::buildLowerCudaPipeline(OpPassManager &manager) {
  manager.addPass(createConvertToCuda());
  layers::addConversionToLlvm(manager);
}

void mlir::dyna::cuda::registerCudaPipelines() {
  registerCUDAPasses();
  PassPipelineRegistration<>(
      "dyna-lower-cuda",
      "Plans the memory of layer functions and lowers them to host code and "
      "kernels in the LLVM dialect.",
      [](OpPassManager &manager) {
        MemoryPhaseOptions memory;
        memory.target = "cuda";
        buildMemoryPhase(manager, memory);
        buildLowerCudaPipeline(manager);
      });
}
