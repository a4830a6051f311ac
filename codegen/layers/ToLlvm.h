//===- ToLlvm.h - From lowered functions to LLVM IR -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What the code of all targets goes through once its layer functions are loops
// and vectors: the passes into the LLVM dialect, and LLVM's own optimisation.
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

/// Adds the passes that turn what a target's own conversion leaves (arith, math,
/// scf, vector) into the LLVM dialect.
void addConversionToLlvm(OpPassManager &manager);

/// Runs LLVM's default passes of `level` (0 to 3, as -O0 to -O3).
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine,
                    unsigned level);

} // namespace dyna::layers
} // namespace mlir

#endif // DYNA_CODEGEN_LAYERS_TOLLVM_H
