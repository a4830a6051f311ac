//===- dyna-translate.cpp - Converts configurations and plans ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/text/ShortDiagnostics.h"
#include "dialects/dyna/text/TextInput.h"
#include "dialects/exec/SwitchTranslation.h"
#include "frontends/Freeze.h"
#include "frontends/Frontends.h"
#include "frontends/Passes.h"
#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Support/FileUtilities.h"
#include "passes/plan/Passes.h"
#include "runtime/base/file/FileId.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Printable.h"
#include "runtime/plan/program/PlanFile.h"
#include "tools/ToolSupport.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/SourceMgr.h"

using namespace mlir;
namespace cl = llvm::cl;

// Bad input exits with code 2, as in every tool of the project.
static int fail(const llvm::Twine &message) {
  llvm::errs() << "dyna-translate: " << ::dyna::messageText(message.str())
               << '\n';
  return 2;
}

using Import = OwningOpRef<ModuleOp> (*)(MLIRContext *, llvm::MemoryBufferRef,
                                         const mlir::dyna::ModelParts &);

/// Shows the line of a diagnostic. Of a long line it shows the surroundings: a
/// configuration is often one line.
static void showExcerpt(llvm::MemoryBufferRef text, unsigned line,
                        unsigned column) {
  constexpr size_t most = 100, before = 40;
  StringRef rest = text.getBuffer();
  while (--line)
    rest = rest.split('\n').second;
  rest = rest.split('\n').first;
  auto isWithin = [&](size_t at) { // inside a character
    return at < rest.size() && (rest[at] & 0xc0) == 0x80;
  };
  size_t at = std::min<size_t>(column - 1, rest.size());
  size_t begin = rest.size() <= most || at < before ? 0 : at - before;
  while (isWithin(begin))
    ++begin;
  size_t end = std::min(begin + most, rest.size());
  while (isWithin(end))
    ++end;
  std::string left =
      (begin > 0 ? "..." : "") + ::dyna::printable(rest.slice(begin, at).str());
  llvm::errs() << left << ::dyna::printable(rest.slice(at, end).str())
               << (end < rest.size() ? "...\n" : "\n")
               << std::string(left.size(), ' ') << "^\n";
}

/// Prints a diagnostic at a place of `text`; leaves others to the next handler.
static LogicalResult sayWithExcerpt(Diagnostic &diagnostic,
                                    llvm::MemoryBufferRef text) {
  auto place = dyn_cast<FileLineColLoc>(diagnostic.getLocation());
  if (!place || place.getFilename() != text.getBufferIdentifier() ||
      place.getLine() == 0 || place.getColumn() == 0)
    return failure();
  auto say = [&](Diagnostic &said, StringRef kind) {
    auto at = cast<FileLineColLoc>(said.getLocation());
    llvm::errs() << place.getFilename().getValue() << ':' << at.getLine() << ':'
                 << at.getColumn() << ": " << kind << ": "
                 << ::dyna::messageText(said.str()) << '\n';
    showExcerpt(text, at.getLine(), at.getColumn());
  };
  say(diagnostic, diagnostic.getSeverity() == DiagnosticSeverity::Warning
                      ? "warning"
                      : "error");
  for (Diagnostic &note : diagnostic.getNotes())
    say(note, "note");
  return success();
}

static int write(StringRef output, StringRef text) {
  ::dyna::Status status = ::dyna::writeOutput(output.str(), text);
  return status.isOk() ? 0 : fail(status.message());
}

static int print(ModuleOp module, StringRef output) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  module.print(stream);
  stream << '\n';
  return write(output, text);
}

/// Adds the bytes of a plan (runtime/plan/program/PlanFile.h) as an `exec.plan`
/// of `module`. A step of several graphs becomes the `exec.plan`s of an
/// `exec.step`.
static LogicalResult addPlans(ModuleOp module, llvm::MemoryBufferRef bytes,
                              SmallVectorImpl<exec::PlanOp> &plans) {
  MLIRContext *context = module.getContext();
  context->loadDialect<exec::ExecDialect>();
  Location location = FileLineColLoc::get(context, bytes.getBufferIdentifier(),
                                          /*line=*/0, /*column=*/0);
  // Protobuf reads an empty file as a message without fields, so reject it
  // here.
  if (bytes.getBufferSize() == 0)
    return emitError(location) << "these bytes are no plan: there are none";
  std::string_view view(bytes.getBufferStart(), bytes.getBufferSize());
  auto step = ::dyna::readStepPlan(view);
  if (!step.isOk())
    return emitError(location) << step.status().message();
  if (::dyna::readPlan(view).isOk()) {
    SymbolTable symbols(module);
    OpBuilder builder = OpBuilder::atBlockEnd(module.getBody());
    auto plan = exec::importPlan(builder, location, step->phases[0].plan);
    if (failed(plan))
      return failure();
    symbols.insert(*plan);
    plans.push_back(*plan);
    return success();
  }
  auto made = exec::importStep(module, location, "step", *step);
  if (failed(made))
    return failure();
  plans = exec::plansOf(*made);
  return success();
}

/// Imports the plan alone.
static OwningOpRef<ModuleOp> importPlan(MLIRContext *context,
                                        llvm::MemoryBufferRef bytes,
                                        const mlir::dyna::ModelParts &) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(FileLineColLoc::get(
      context, bytes.getBufferIdentifier(), /*line=*/0, /*column=*/0));
  SmallVector<exec::PlanOp> plans;
  if (failed(addPlans(*module, bytes, plans)))
    return nullptr;
  return module;
}

namespace {

/// Options that add parts to a configuration's model, or freeze some.
struct PartOptions {
  explicit PartOptions(cl::OptionCategory &category)
      : lora("lora",
             cl::desc("Linears of a configuration that get low-rank adapters, "
                      "their rank and alpha (8), as in q,v:16; all else is "
                      "frozen"),
             cl::value_desc("linear,...:rank[:alpha]"), cl::cat(category)),
        freeze("freeze",
               cl::desc("Layers of a configuration that are frozen, as in "
                        "embed+h.0-h.5"),
               cl::value_desc("layer+first-last"), cl::cat(category)),
        exits("exits",
              cl::desc("Blocks of a configuration that get a head behind them, "
                       "and the weights of its loss, as in h.3:0.3;h.7:0.3; "
                       "with :own behind the weight, the head has a table of "
                       "its own"),
              cl::value_desc("layer:weight[:own];..."), cl::cat(category)) {}

  /// Returns false and prints the reason if an option is wrong or not for this
  /// input.
  bool read(bool isConfig);

  cl::opt<std::string> lora, freeze, exits;
  mlir::dyna::ModelParts parts;
};

} // namespace

bool PartOptions::read(bool isConfig) {
  std::string error;
  for (const cl::opt<std::string> *option : {&lora, &freeze, &exits})
    if (option->getNumOccurrences() > 0 && !isConfig)
      error = "--" + option->ArgStr.str() +
              " goes with a configuration: --from-config, --gpt2 or --llama";
  if (error.empty() && lora.getNumOccurrences() > 0) {
    if (auto parsed = mlir::dyna::parseLora(lora, error))
      parts.lora = *parsed;
    if (freeze.getNumOccurrences() > 0)
      error = "--lora freezes all layers already: leave --freeze out";
  } else if (error.empty() && freeze.getNumOccurrences() > 0 &&
             freeze.empty()) {
    error = "--freeze expects layers, as in \"embed+h.0-h.5\", but got \"\"";
  }
  if (error.empty() && exits.getNumOccurrences() > 0)
    if (auto parsed = mlir::dyna::parseExits(exits, error))
      parts.exits = *parsed;
  if (!error.empty())
    fail(error);
  return error.empty();
}

static int translate(Import import, StringRef input, StringRef output,
                     const PartOptions &options) {
  std::string message;
  // A serialised plan is binary, so do not open it as text.
  auto buffer = import == importPlan
                    ? openInputFile(input, &message)
                    : mlir::dyna::openTextInput(input, &message);
  if (!buffer)
    return fail(message);
  llvm::SourceMgr sources;
  llvm::MemoryBufferRef text = buffer->getMemBufferRef();
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  MLIRContext context;
  context.printOpOnDiagnostic(false);
  mlir::dyna::shortenDiagnostics(sources);
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  ScopedDiagnosticHandler excerpts(&context, [&](Diagnostic &diagnostic) {
    return sayWithExcerpt(diagnostic, text);
  });
  OwningOpRef<ModuleOp> module = import(&context, text, options.parts);
  if (!module ||
      (!options.freeze.empty() &&
       failed(mlir::dyna::freezeLayers(*module, options.freeze))) ||
      failed(verify(*module)) || failed(mlir::dyna::checkFamilies(*module)))
    return 2;
  return print(*module, output);
}

/// Returns the graph called `name`, or without a name the only graph.
static exec::GraphOp findGraph(ModuleOp module, StringRef name) {
  auto graphs = llvm::to_vector(module.getOps<exec::GraphOp>());
  if (name.empty() && graphs.size() == 1)
    return graphs.front();
  std::string names;
  for (exec::GraphOp graph : graphs) {
    if (graph.getSymName() == name)
      return graph;
    names += (names.empty() ? "" : ", ") + graph.getSymName().str();
  }
  if (graphs.empty())
    fail("--into names a module without an exec.graph: add one with dyna-opt "
         "--dyna-plan");
  else
    fail("--graph expects one of " + names + ", but got '" + name + "'");
  return nullptr;
}

/// Returns the graph that the plan of a phase names.
static exec::GraphOp graphOf(exec::PlanOp plan, ModuleOp module) {
  for (auto graph : module.getOps<exec::GraphOp>())
    if (plan.getStrategy() == ::dyna::graphName(exec::strategyOf(graph)))
      return graph;
  fail("--into names a module without an exec.graph of strategy '" +
       plan.getStrategy().value_or("") + "'");
  return nullptr;
}

/// Checks that `plan` was made for the model of `module`, which is in the file
/// `into`.
static int checkModel(exec::PlanOp plan, StringRef input, ModuleOp module,
                      StringRef into) {
  auto model = mlir::dyna::modelOf(module);
  if (failed(model))
    return 2;
  auto hash = static_cast<uint64_t>(plan.getModel());
  if (hash == model->hash())
    return 0;
  return fail("'" + input + "' was planned for model 0x" +
              llvm::utohexstr(hash) + ", but '" + into + "' has model 0x" +
              llvm::utohexstr(model->hash()) +
              ": --into expects the module that it was planned for");
}

namespace {

/// A module with graphs and plans; null after a message where the text is bad.
struct ParsedFile {
  explicit ParsedFile(std::unique_ptr<llvm::MemoryBuffer> text)
      : context(dialects()), diagnostics(*sources, &context) {
    context.printOpOnDiagnostic(false);
    sources->AddNewSourceBuffer(std::move(text), llvm::SMLoc());
    mlir::dyna::shortenDiagnostics(*sources);
    module = parseSourceFile<ModuleOp>(sources, &context);
    if (module && failed(mlir::dyna::checkFamilies(*module)))
      module = {};
  }

  static DialectRegistry dialects() {
    DialectRegistry registry;
    registry.insert<mlir::dyna::DynaDialect, dist::DistDialect,
                    exec::ExecDialect>();
    return registry;
  }

  std::shared_ptr<llvm::SourceMgr> sources =
      std::make_shared<llvm::SourceMgr>();
  MLIRContext context;
  SourceMgrDiagnosticHandler diagnostics;
  OwningOpRef<ModuleOp> module;
};

} // namespace

/// Imports a plan beside its graph, into the module `into`.
static int importPlanInto(StringRef input, StringRef into, StringRef graphName,
                          StringRef output) {
  std::string message;
  auto bytes = openInputFile(input, &message);
  auto text = bytes ? mlir::dyna::openTextInput(into, &message) : nullptr;
  if (!text)
    return fail(message);
  ParsedFile file(std::move(text));
  OwningOpRef<ModuleOp> &module = file.module;
  if (!module)
    return 2;
  // A file of one plan does not name its graph, so the command line does.
  exec::GraphOp graph;
  if (auto read = ::dyna::readPlan(bytes->getBuffer());
      read.isOk() && !(graph = findGraph(*module, graphName)))
    return 2;
  SmallVector<exec::PlanOp> plans;
  if (failed(addPlans(*module, *bytes, plans)))
    return 2;
  for (exec::PlanOp plan : plans) {
    if (checkModel(plan, input, *module, into))
      return 2;
    exec::GraphOp own = graph ? graph : graphOf(plan, *module);
    if (!own || failed(exec::setGraph(plan, own)))
      return 2;
  }
  if (failed(verify(*module)))
    return 2;
  return print(*module, output);
}

/// Exports the only `exec.step` of a module, or its only `exec.plan`.
static int exportPlan(StringRef input, StringRef output) {
  std::string message;
  auto buffer = mlir::dyna::openTextInput(input, &message);
  if (!buffer)
    return fail(message);
  ParsedFile parsed(std::move(buffer));
  OwningOpRef<ModuleOp> &module = parsed.module;
  if (!module)
    return 2;
  auto steps = llvm::to_vector(module->getOps<exec::StepOp>());
  if (steps.size() == 1) {
    for (exec::PlanOp plan : exec::plansOf(steps.front()))
      if (failed(exec::requireComplete(plan)))
        return 2;
    return write(output,
                 ::dyna::writeStepPlan(exec::exportStep(steps.front())));
  }
  auto plans = llvm::to_vector(module->getOps<exec::PlanOp>());
  if (plans.size() != 1)
    return fail("expects a module with one exec.plan, but got " +
                llvm::Twine(plans.size()));
  if (failed(exec::requireComplete(plans.front())))
    return 2;
  return write(output, ::dyna::writePlan(exec::exportPlan(plans.front())));
}

/// Returns true if the output is none of the input files; else prints an error.
static bool isOtherFile(const std::string &output,
                        std::initializer_list<std::string> inputs) {
  auto outputId = ::dyna::fileIdOf(output);
  for (const std::string &file : inputs)
    if (outputId && file != "-" && output != "-" &&
        outputId == ::dyna::fileIdOf(file)) {
      fail("cannot write " + output + ": it is the input " + file +
           "; name another file with -o");
      return false;
    }
  return true;
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::dyna::keepPlainNames(argc, argv);
  mlir::dyna::hideLibraryOptions();
  mlir::dyna::setVersion("dyna-translate");
  mlir::dyna::endCrashes();
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
  cl::opt<std::string> into(
      "into", cl::desc("Module to which --plan-to-mlir adds the plan"),
      cl::value_desc("file"), cl::cat(category));
  cl::opt<std::string> graph(
      "graph", cl::desc("exec.graph of that module that the plan is for"),
      cl::value_desc("name"), cl::cat(category));
  PartOptions partOptions(category);
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
  if (family != PlanToMlir && !into.empty())
    return fail("--into goes with --plan-to-mlir");
  if (into.empty() && !graph.empty())
    return fail("--graph goes with --into, the module that has the graph");
  if (!partOptions.read(family >= Gpt2 && family <= Config) ||
      !isOtherFile(output, {input, into}))
    return 2;
  if (!into.empty())
    return importPlanInto(input, into, graph, output);
  if (family == MlirToPlan)
    return exportPlan(input, output);
  return translate(imports[family], input, output, partOptions);
}
