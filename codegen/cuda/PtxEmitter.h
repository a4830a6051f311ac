//===- PtxEmitter.h - Compiles kernels to PTX and cubins --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CUDA_PTXEMITTER_H
#define DYNA_CODEGEN_CUDA_PTXEMITTER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::dyna::cuda {

/// Returns the architectures in a list such as "sm_80,sm_90", ascending; none
/// for "emulated". An error says what was expected.
llvm::Expected<SmallVector<int>> readArchitectures(StringRef text);

/// Returns the PTX of a module of kernels of the LLVM dialect for one
/// architecture, or reports errors. The same module gives the same text.
FailureOr<std::string> emitPtx(ModuleOp kernels, int architecture);

/// Returns the path of ptxas: `given`, or ptxas of $CUDA_HOME, PATH or
/// /usr/local/cuda. An error lists the places.
llvm::Expected<std::string> findPtxas(StringRef given);

/// Returns the CUDA version that `ptxas` reports, as 1000 major + 10 minor.
llvm::Expected<int> versionOf(StringRef ptxas);

/// Returns the cubin that `ptxas` makes of `ptx`, or the first line of its
/// errors. Waits at most five minutes.
llvm::Expected<std::string> assemble(StringRef ptxas, StringRef ptx,
                                     int architecture);

} // namespace mlir::dyna::cuda

#endif // DYNA_CODEGEN_CUDA_PTXEMITTER_H
