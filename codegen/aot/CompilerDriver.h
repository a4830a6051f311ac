//===- CompilerDriver.h - The phases of dynac -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// In: a file with one `dyna.model`. Out: a training binary, or the module as it
// is after a phase. Phases, each ending in its verifier:
//
//   parse          the file itself, in the compute type asked for
//   (search)       the strategies to compile, where they are not given
//   differentiate  layer functions with gradients
//   distribute     also at the tensor degrees of the strategies
//   memory         every value has a place
//   plan           graphs and plans of the strategies, for lengths that are
//                  given; only to be looked at
//   lower          the LLVM dialect
//   llvm           LLVM IR
//   (objects, link)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_AOT_COMPILERDRIVER_H
#define DYNA_CODEGEN_AOT_COMPILERDRIVER_H

#include "codegen/aot/DriverOptions.h"

namespace mlir::dyna {

/// Runs the driver; diagnostics go to stderr. Returns the process's exit code:
/// 0; 2 when an option, a file or the module cannot be used; 1 when a module
/// that is fine does not become code, which is a fault of the compiler.
int runDriver(const DriverOptions &options);

} // namespace mlir::dyna

#endif // DYNA_CODEGEN_AOT_COMPILERDRIVER_H
