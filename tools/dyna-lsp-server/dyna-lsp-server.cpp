//===- dyna-lsp-server.cpp - Serves dyna modules to editors -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/text/TextInput.h"
#include "dialects/exec/Exec.h"
#include "frontends/Passes.h"
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/Diagnostics.h"
#include "mlir/Tools/mlir-lsp-server/MlirLspServerMain.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;

// The server keeps the texts of its documents to itself and hands them to the
// parser of modules, which calls itself for each bracket. The linker puts this
// function in between (`--wrap`), so that all texts meet the limit of the other
// tools, however the editor sent them.
LogicalResult
parse(const llvm::SourceMgr &, Block *, const ParserConfig &, AsmParserState *,
      AsmParserCodeCompleteContext *) asm("__real_" DYNA_PARSE_SYMBOL);
LogicalResult
parseChecked(const llvm::SourceMgr &, Block *, const ParserConfig &,
             AsmParserState *,
             AsmParserCodeCompleteContext *) asm("__wrap_" DYNA_PARSE_SYMBOL);

/// Compares the models of a document with their families, as other tools do.
static LogicalResult checkFamilies(MLIRContext *context, Block *block) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(context));
  auto &inside = module->getBody()->getOperations();
  inside.splice(inside.end(), block->getOperations());
  const LogicalResult result = mlir::dyna::checkFamilies(*module);
  block->getOperations().splice(block->end(), inside);
  return result;
}

LogicalResult parseChecked(const llvm::SourceMgr &sources, Block *block,
                           const ParserConfig &config, AsmParserState *state,
                           AsmParserCodeCompleteContext *completion) {
  unsigned id = sources.getMainFileID();
  const llvm::MemoryBuffer *buffer = sources.getMemoryBuffer(id);
  auto fault = mlir::dyna::findTextFault(buffer->getBuffer());
  if (!fault)
    return failure(failed(parse(sources, block, config, state, completion)) ||
                   failed(checkFamilies(config.getContext(), block)));
  auto [line, column] = sources.getLineAndColumn(
      llvm::SMLoc::getFromPointer(buffer->getBufferStart() + fault->at), id);
  return emitError(FileLineColLoc::get(
             config.getContext(), buffer->getBufferIdentifier(), line, column))
         << mlir::dyna::describeFault(*fault);
}

int main(int argc, char **argv) {
  mlir::DialectRegistry registry;
  registry.insert<mlir::dyna::DynaDialect, mlir::dist::DistDialect,
                  mlir::exec::ExecDialect>();
  return llvm::failed(mlir::MlirLspServerMain(argc, argv, registry));
}
