//===- dyna-lsp-server.cpp - Language server for dyna modules -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/exec/Exec.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::dyna::DynaDialect, mlir::dist::DistDialect,
                  mlir::exec::ExecDialect>();
  return llvm::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
