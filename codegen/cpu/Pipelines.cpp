//===- Pipelines.cpp - Lowers layer functions to the LLVM dialect ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Pipelines.h"

#include "codegen/cpu/Passes.h"
#include "codegen/layers/ToLlvm.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Pass/PassRegistry.h"
#include "passes/Pipelines.h"

using namespace mlir;

void mlir::dyna::cpu::buildLowerCpuPipeline(OpPassManager &manager,
                                            const LowerCpuOptions &options) {
  ConvertToCpuOptions convert;
  convert.matmul = options.matmul;
  convert.vectorBits = options.vectorBits;
  convert.streamingBytes = options.streamingBytes;
  manager.addPass(createConvertToCpu(convert));
  layers::addConversionToLlvm(manager);
}

void mlir::dyna::cpu::registerCpuPipelines() {
  registerCPUPasses();
  PassPipelineRegistration<LowerCpuOptions>(
      "dyna-lower-cpu",
      "Plans the memory of layer functions and lowers them to the LLVM "
      "dialect.",
      [](OpPassManager &manager, const LowerCpuOptions &options) {
        MemoryPhaseOptions memory;
        memory.target = "cpu";
        buildMemoryPhase(manager, memory);
        buildLowerCpuPipeline(manager, options);
      });
}
