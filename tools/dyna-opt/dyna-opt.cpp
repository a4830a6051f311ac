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
#include "mlir/Support/FileUtilities.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipelines.h"
#include "runtime/files/OutputFile.h"
#include "tools/ToolSupport.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/MemoryBuffer.h"

/// Errors about a module as a whole would print all of it; the location says
/// where. `--mlir-print-op-on-diagnostic` still turns it on.
static void printNoOpOnDiagnostic() {
  mlir::registerMLIRContextCLOptions();
  llvm::cl::Option *option =
      llvm::cl::getRegisteredOptions().lookup("mlir-print-op-on-diagnostic");
  assert(option && "MLIR has another name for it");
  static_cast<llvm::cl::opt<bool> *>(option)->setInitialValue(false);
}

/// What MLIR's own main does for a file, but for the file itself: that one is
/// there when it is whole.
static mlir::LogicalResult run(const std::string &input,
                               const std::string &output,
                               mlir::DialectRegistry &registry) {
  std::string message, text;
  auto fail = [](const llvm::Twine &what) {
    llvm::errs() << "dyna-opt: " << what << '\n';
    return mlir::failure();
  };
  auto buffer = mlir::openInputFile(input, &message);
  if (!buffer)
    return fail(message);
  // A wrong path is found before the work is done.
  auto file = ::dyna::OutputFile::replace(output);
  if (!file.isOk())
    return fail(file.status().message());
  llvm::raw_string_ostream stream(text);
  if (failed(mlir::MlirOptMain(stream, std::move(buffer), registry,
                               mlir::MlirOptMainConfig::createFromCLOptions())))
    return mlir::failure();
  ::dyna::Status status = file->write(text);
  if (status.isOk())
    status = file->close();
  return status.isOk() ? mlir::success() : fail(status.message());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::dyna::keepPlainNames(argc, argv);
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
  auto [input, output] = mlir::registerAndParseCLIOptions(
      argc, argv, "Dyna optimizer driver\n", registry);
  return mlir::asMainReturnCode(
      output == "-" ? mlir::MlirOptMain(argc, argv, input, output, registry)
                    : run(input, output, registry));
}
