//===- dyna-translate.cpp - From a configuration to a module -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "frontends/Frontends.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Support/FileUtilities.h"
#include "tools/ToolSupport.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/ToolOutputFile.h"

using namespace mlir;
namespace cl = llvm::cl;

// Bad input exits with 2, as everywhere in the project.
static int fail(const llvm::Twine &message) {
  llvm::errs() << "dyna-translate: " << message << '\n';
  return 2;
}

using Import = OwningOpRef<ModuleOp> (*)(MLIRContext *, llvm::MemoryBufferRef);

static int translate(Import import, StringRef input, StringRef output) {
  std::string message;
  auto buffer = openInputFile(input, &message);
  if (!buffer)
    return fail(message);
  llvm::SourceMgr sources;
  llvm::MemoryBufferRef text = buffer->getMemBufferRef();
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  MLIRContext context;
  context.printOpOnDiagnostic(false);
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  OwningOpRef<ModuleOp> module = import(&context, text);
  if (!module || failed(verify(*module)))
    return 2;
  auto file = openOutputFile(output, &message);
  if (!file)
    return fail(message);
  module->print(file->os());
  file->os() << '\n';
  file->keep();
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  dyna::hideLibraryOptions();
  dyna::setVersion("dyna-translate");
  enum Family { None, Gpt2, Llama, Config };
  cl::OptionCategory category("dyna-translate options");
  cl::opt<Family> family(
      cl::desc("What the input is:"), cl::init(None), cl::cat(category),
      cl::values(clEnumValN(Gpt2, "gpt2", "the config.json of a GPT-2"),
                 clEnumValN(Llama, "llama", "the config.json of a LLaMA"),
                 clEnumValN(Config, "from-config",
                            "a config.json, by the family in its model_type")));
  cl::opt<std::string> input(cl::Positional, cl::desc("<config.json>"),
                             cl::init("-"), cl::cat(category));
  cl::opt<std::string> output("o", cl::desc("Output file"), cl::init("-"),
                              cl::value_desc("file"), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  if (!dyna::parseToolOptions(argc, argv,
                              "Translates a model configuration to a dyna "
                              "module.\n"))
    return 2;
  static constexpr Import imports[] = {nullptr, dyna::importGpt2,
                                       dyna::importLlama, dyna::importConfig};
  if (family == None)
    return fail("say what the input is: --from-config (a config.json with its "
                "model_type), --gpt2 or --llama");
  return translate(imports[family], input, output);
}
