//===- CompilerDriver.h - Runs the phases of dynac --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In: a file with one `dyna.model`. Out: a training binary, or the module after
// some phase. Each phase ends in its verifier:
//
//     parse          the file, in the requested compute type
//     (search)       the strategies to compile, if they are not given
//     differentiate  layer functions with gradients
//     distribute     also at the tensor degrees of the strategies
//     memory         every value has a place
//     plan           graphs and plans of the strategies for given lengths;
//                    only for reading
//     lower          the LLVM dialect
//     llvm           LLVM IR
//     (objects, link)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_COMPILERDRIVER_H
#define DYNA_CODEGEN_AOT_COMPILERDRIVER_H

#include "codegen/aot/DriverOptions.h"

namespace mlir::dyna {

/// Runs the driver; diagnostics go to stderr. Returns the exit code of the
/// process:
///
/// - 0: success.
/// - 1: a valid module does not become code, which is a fault of the compiler.
/// - 2: an option, a file or the module cannot be used.
int runDriver(const DriverOptions &options);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_COMPILERDRIVER_H
