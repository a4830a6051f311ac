//===- PtxEmitter.h - Kernels to PTX and cubins -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_CUDA_PTXEMITTER_H
#define DYNA_CODEGEN_CUDA_PTXEMITTER_H

#include "mlir/IR/BuiltinOps.h"
#include "llvm/Support/Error.h"

#include <string>

namespace mlir::dyna::cuda {

/// The architectures that "sm_80,sm_90" names, ascending; none of "emulated". An
/// error that says what is expected otherwise.
llvm::Expected<SmallVector<int>> readArchitectures(StringRef text);

/// PTX of a module of kernels of the LLVM dialect for one architecture, or
/// diagnostics. Same module, same text.
FailureOr<std::string> emitPtx(ModuleOp kernels, int architecture);

/// The path of ptxas: `given`, or that of $CUDA_HOME, of PATH or of
/// /usr/local/cuda; or where it was sought.
llvm::Expected<std::string> findPtxas(StringRef given);

/// The version of CUDA that `ptxas` is of, 1000 major + 10 minor, as it says it
/// itself.
llvm::Expected<int> versionOf(StringRef ptxas);

/// The cubin that `ptxas` makes of `ptx`, or its first line of complaint. Waits
/// for five minutes at most.
llvm::Expected<std::string> assemble(StringRef ptxas, StringRef ptx,
                                     int architecture);

} // namespace mlir::dyna::cuda

#endif // DYNA_CODEGEN_CUDA_PTXEMITTER_H
