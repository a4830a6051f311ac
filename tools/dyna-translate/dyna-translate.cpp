//===- dyna-translate.cpp - Configurations, plans, modules ------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "dialects/exec/PlanTranslation.h"
#include "frontends/Frontends.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
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

/// A serialised plan (runtime/plan/Plan.proto) as a module with an `exec.plan`.
static OwningOpRef<ModuleOp> importPlan(MLIRContext *context,
                                        llvm::MemoryBufferRef bytes) {
  context->loadDialect<exec::ExecDialect>();
  Location location = FileLineColLoc::get(context, bytes.getBufferIdentifier(),
                                          /*line=*/0, /*column=*/0);
  ::dyna::plan::Plan plan;
  if (bytes.getBufferSize() > std::numeric_limits<int>::max() ||
      !plan.ParseFromArray(bytes.getBufferStart(),
                           static_cast<int>(bytes.getBufferSize()))) {
    emitError(location) << "this is no serialised plan";
    return nullptr;
  }
  OwningOpRef<ModuleOp> module = ModuleOp::create(location);
  OpBuilder builder = OpBuilder::atBlockEnd(module->getBody());
  if (failed(exec::importPlan(builder, location, "plan", plan)))
    return nullptr;
  return module;
}

/// The only `exec.plan` of a module, serialised.
static int exportPlan(StringRef input, StringRef output) {
  std::string message;
  auto buffer = openInputFile(input, &message);
  if (!buffer)
    return fail(message);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  DialectRegistry registry;
  registry
      .insert<mlir::dyna::DynaDialect, dist::DistDialect, exec::ExecDialect>();
  MLIRContext context(registry);
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  auto module = parseSourceFile<ModuleOp>(sources, &context);
  if (!module)
    return 2;
  auto plans = llvm::to_vector(module->getOps<exec::PlanOp>());
  if (plans.size() != 1)
    return fail("expects a module with one exec.plan, but got " +
                llvm::Twine(plans.size()));
  auto file = openOutputFile(output, &message);
  if (!file)
    return fail(message);
  file->os() << exec::exportPlan(plans.front()).SerializeAsString();
  file->keep();
  return 0;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::dyna::hideLibraryOptions();
  mlir::dyna::setVersion("dyna-translate");
  mlir::dyna::explainFatalErrors("dyna-translate");
  enum Family { None, Gpt2, Llama, Config, PlanToMlir, MlirToPlan };
  cl::OptionCategory category("dyna-translate options");
  cl::opt<Family> family(
      cl::desc("What the input is:"), cl::init(None), cl::cat(category),
      cl::values(clEnumValN(Gpt2, "gpt2", "the config.json of a GPT-2"),
                 clEnumValN(Llama, "llama", "the config.json of a LLaMA"),
                 clEnumValN(Config, "from-config",
                            "a config.json, by the family in its model_type"),
                 clEnumValN(PlanToMlir, "plan-to-mlir",
                            "a serialised plan, of which to write exec.plan"),
                 clEnumValN(MlirToPlan, "mlir-to-plan",
                            "a module with an exec.plan, to be serialised")));
  cl::opt<std::string> input(cl::Positional, cl::desc("<input>"), cl::init("-"),
                             cl::cat(category));
  cl::opt<std::string> output("o", cl::desc("Output file"), cl::init("-"),
                              cl::value_desc("file"), cl::cat(category));
  cl::HideUnrelatedOptions(category);
  if (!mlir::dyna::parseToolOptions(
          argc, argv,
          "Translates a model configuration to a dyna "
          "module, and plans to exec and back.\n"))
    return 2;
  static constexpr Import imports[] = {nullptr, mlir::dyna::importGpt2,
                                       mlir::dyna::importLlama,
                                       mlir::dyna::importConfig, importPlan};
  if (family == None)
    return fail("say what the input is: --from-config (a config.json with its "
                "model_type), --gpt2, --llama, --plan-to-mlir or "
                "--mlir-to-plan");
  if (family == MlirToPlan)
    return exportPlan(input, output);
  return translate(imports[family], input, output);
}
