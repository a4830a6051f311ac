//===- ToLlvm.h - Lowers loops and vectors to LLVM IR -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All targets share the steps from loops and vectors to optimised code: the
// passes into the LLVM dialect, and LLVM's own optimisation.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_LAYERS_TOLLVM_H
#define DYNA_CODEGEN_LAYERS_TOLLVM_H

namespace llvm {
class Module;
class TargetMachine;
} // namespace llvm

namespace mlir {
class OpPassManager;

namespace dyna::layers {

/// Adds the passes from a target's own conversion (arith, math, scf, vector) to
/// the LLVM dialect.
void addConversionToLlvm(OpPassManager &manager);

/// Runs LLVM's default passes of `level` (0 to 3, as -O0 to -O3).
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine,
                    unsigned level);

} // namespace dyna::layers
} // namespace mlir

#endif // DYNA_CODEGEN_LAYERS_TOLLVM_H
