//===- Pipelines.h - Lowers layer functions to kernels ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CUDA_PIPELINES_H
#define DYNA_CODEGEN_CUDA_PIPELINES_H

namespace mlir {
class OpPassManager;
}

namespace mlir::dyna::cuda {

/// Lowers the result of the memory phase to the LLVM and NVVM dialects: host
/// code, and `@dyna_kernels` inside it.
void buildLowerCudaPipeline(OpPassManager &manager);

/// Registers the passes and the pipeline `dyna-lower-cuda`, which runs the
/// memory phase first.
void registerCudaPipelines();

} // namespace mlir::dyna::cuda

#endif // DYNA_CODEGEN_CUDA_PIPELINES_H
