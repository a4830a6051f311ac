//===- dyna-random-module.cpp - Prints a random dyna module ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/reference/RandomModule.h"

#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/Verifier.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;

int main(int argc, char **argv) {
  llvm::cl::opt<uint64_t> seed("seed", llvm::cl::init(0),
                               llvm::cl::desc("Which module."));
  llvm::cl::opt<unsigned> count("count", llvm::cl::init(1),
                                llvm::cl::desc("Models, of seed, seed+1, ..."));
  llvm::cl::opt<bool> smooth("smooth",
                             llvm::cl::desc("Without kinks, as for bf16."));
  llvm::cl::ParseCommandLineOptions(argc, argv, "Random dyna modules\n");

  MLIRContext context;
  context.loadDialect<mlir::dyna::DynaDialect>();
  OwningOpRef<ModuleOp> module = ModuleOp::create(UnknownLoc::get(&context));
  for (unsigned i = 0; i < count; ++i)
    mlir::dyna::reference::addRandomModel(
        *module, "m" + std::to_string(seed + i), seed + i, smooth);
  if (failed(verify(*module)))
    return 1;
  module->print(llvm::outs());
  llvm::outs() << "\n";
  return 0;
}
