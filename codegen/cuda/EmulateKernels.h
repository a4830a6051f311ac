//===- EmulateKernels.h - Turns kernels into code of the processor --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CUDA_EMULATEKERNELS_H
#define DYNA_CODEGEN_CUDA_EMULATEKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna::cuda {

/// Moves the functions of `kernels`, a module of the LLVM and NVVM dialects,
/// into `host`. GPU operations become calls of test/standins/Fibers.h, and
/// conversions to bf16 become integer arithmetic. Reports any other op of the
/// NVVM dialect.
LogicalResult emulateKernels(ModuleOp kernels, ModuleOp host);

} // namespace mlir::dyna::cuda

#endif // DYNA_CODEGEN_CUDA_EMULATEKERNELS_H
