//===- Pipelines.h - Lowers layer functions to the LLVM dialect -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CPU_PIPELINES_H
#define DYNA_CODEGEN_CPU_PIPELINES_H

#include "mlir/Pass/PassOptions.h"

namespace mlir {
class OpPassManager;
}

namespace mlir::dyna::cpu {

struct LowerCpuOptions : PassPipelineOptions<LowerCpuOptions> {
  Option<std::string> matmul{
      *this, "matmul", llvm::cl::init("library"),
      llvm::cl::desc("Matrix products in f32: library or generated.")};
  Option<int64_t> vectorBits{
      *this, "vector-bits", llvm::cl::init(512),
      llvm::cl::desc("Bits of the vectors that loops work in.")};
  Option<int64_t> streamingBytes{
      *this, "streaming-bytes", llvm::cl::init(128 << 20),
      llvm::cl::desc(
          "Sweeps that write more bytes than this bypass the cache.")};
};

/// Lowers the result of the memory phase to the LLVM dialect, ready for
/// translation.
void buildLowerCpuPipeline(OpPassManager &manager,
                           const LowerCpuOptions &options);

/// Registers the passes and the pipeline `dyna-lower-cpu`, which runs the
/// memory phase first.
void registerCpuPipelines();

} // namespace mlir::dyna::cpu

#endif // DYNA_CODEGEN_CPU_PIPELINES_H
