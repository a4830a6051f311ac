//===- dyna-opt.cpp - Runs passes over dyna modules -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Pipelines.h"
#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/exec/Exec.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipelines.h"
#include "tools/ToolSupport.h"

/// Errors about a module as a whole would print all of it; the location says
/// where. `--mlir-print-op-on-diagnostic` still turns it on.
static void printNoOpOnDiagnostic() {
  mlir::registerMLIRContextCLOptions();
  llvm::cl::Option *option =
      llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  assert(option && "MLIR has another name for it");
  static_cast<llvm::cl::opt<bool> *>(option)->setInitialValue(false);
}

int main(int argc, char **argv) {
  printNoOpOnDiagnostic();
  mlir::dyna::setVersion("dyna-opt");
  mlir::dyna::explainFatalErrors("dyna-opt");
  mlir::DialectRegistry registry;
  registry.insert<mlir::dyna::DynaDialect, mlir::dist::DistDialect,
                  mlir::exec::ExecDialect>();
  // What the last phase leaves is read back, too.
  registry.insert<mlir::LLVM::LLVMDialect>();
  mlir::registerTransformsPasses();
  mlir::dyna::cpu::registerCpuPipelines();
  mlir::dyna::registerPhases();
  return mlir::asMainReturnCode(
      mlir::MlirOptMain(argc, argv, "Dyna optimizer driver\n", registry));
}
