//===- EmulateKernels.h - Kernels as code of the processor ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CUDA_EMULATEKERNELS_H
#define DYNA_CODEGEN_CUDA_EMULATEKERNELS_H

#include "mlir/IR/BuiltinOps.h"

namespace mlir::dyna::cuda {

/// Moves the functions of `kernels`, a module of the LLVM and NVVM dialects,
/// into `host`. What asks something of a GPU becomes a call of
/// test/standins/Fibers.h, and a conversion to bf16 integer arithmetic. Fails,
/// with a diagnostic, where there is another op of the NVVM dialect.
LogicalResult emulateKernels(ModuleOp kernels, ModuleOp host);

} // namespace mlir::dyna::cuda

#endif // DYNA_CODEGEN_CUDA_EMULATEKERNELS_H
