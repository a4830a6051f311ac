//===- dyna-opt.cpp - Runs passes over dyna modules -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/cpu/Pipelines.h"
#include "codegen/cuda/Pipelines.h"
#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/text/ShortDiagnostics.h"
#include "dialects/dyna/text/TextInput.h"
#include "dialects/exec/Exec.h"
#include "frontends/Passes.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Tools/mlir-opt/MlirOptMain.h"
#include "mlir/Transforms/Passes.h"
#include "passes/Pipelines.h"
#include "passes/distribute/SelectFunctions.h"
#include "runtime/base/file/FileId.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Printable.h"
#include "tools/ToolSupport.h"
#include "llvm/Support/InitLLVM.h"

using namespace mlir;
namespace cl = llvm::cl;

/// Finds a flag that MLIR does not export.
static cl::opt<bool> &findFlag(StringRef name) {
  cl::Option *option = cl::getRegisteredOptions().lookup(name);
  assert(option && "MLIR has another name for it");
  return *static_cast<cl::opt<bool> *>(option);
}

/// Hides the hundreds of options that the LLVM libraries register. `--help`
/// shows those for reading and checking modules, `--help-hidden` all.
static void showOurOptions(ArrayRef<const cl::Option *> ours) {
  static constexpr StringRef shown[] = {"allow-unregistered-dialect",
                                        "dump-pass-pipeline",
                                        "emit-bytecode",
                                        "help",
                                        "help-hidden",
                                        "mlir-print-debuginfo",
                                        "mlir-print-ir-after-all",
                                        "mlir-print-local-scope",
                                        "mlir-print-op-generic",
                                        "mlir-print-op-on-diagnostic",
                                        "mlir-timing",
                                        "o",
                                        "pass-pipeline",
                                        "split-input-file",
                                        "verify-diagnostics",
                                        "verify-each",
                                        "verify-roundtrip",
                                        "version"};
  for (auto &entry : cl::getRegisteredOptions()) {
    cl::Option *option = entry.second;
    // The option without a name is the list of passes.
    bool isShown = option->ArgStr.empty() ||
                   llvm::is_contained(shown, entry.first) ||
                   llvm::is_contained(ours, option);
    if (!isShown && option->getOptionHiddenFlag() == cl::NotHidden)
      option->setHiddenFlag(cl::Hidden);
  }
}

namespace {

/// Prints what is selected after every pass.
class SelectionPrinter : public PassManager::IRPrinterConfig {
public:
  explicit SelectionPrinter(mlir::dyna::Selection selection)
      : selection(std::move(selection)) {}

  void printBeforeIfEnabled(Pass *, Operation *, PrintCallbackFn) override {}
  void printAfterIfEnabled(Pass *pass, Operation *operation,
                           PrintCallbackFn) override {
    llvm::errs() << "// -----// after " << pass->getName() << " ("
                 << pass->getArgument() << ") //----- //\n";
    if (auto module = dyn_cast<ModuleOp>(operation))
      for (Operation &op : *module.getBody())
        print(op);
    else
      print(*operation);
  }

private:
  void print(Operation &op) const {
    auto name = op.getAttrOfType<StringAttr>(SymbolTable::getSymbolAttrName());
    if (!name || !selection.has(name.getValue()))
      return;
    op.print(llvm::errs(), OpPrintingFlags().useLocalScope());
    llvm::errs() << "\n\n";
  }

  mlir::dyna::Selection selection;
};

} // namespace

/// Text of the input, for diagnostics of contexts that MLIR's main makes.
static llvm::MemoryBufferRef inputText;

/// Lets diagnostics of passes at long lines be printed by us, all others by MLIR.
/// Its main registers a handler behind the context, so ours comes with a dialect.
template <typename DialectT>
static void shortenLinesOf(DialectRegistry &registry) {
  registry.addExtension(+[](MLIRContext *context, DialectT *) {
    context->getDiagEngine().registerHandler([](Diagnostic &diagnostic) {
      return mlir::dyna::printShort(diagnostic, inputText);
    });
  });
}

/// Returns true if the text parses. Diagnostics have at most a screen.
static bool parses(const DialectRegistry &registry,
                   const MlirOptMainConfig &config) {
  MLIRContext context(registry);
  context.allowUnregisteredDialects(config.shouldAllowUnregisteredDialects());
  context.printOpOnDiagnostic(false);
  auto sources = std::make_shared<llvm::SourceMgr>();
  sources->AddNewSourceBuffer(
      llvm::MemoryBuffer::getMemBuffer(inputText,
                                       /*RequiresNullTerminator=*/false),
      llvm::SMLoc());
  mlir::dyna::shortenDiagnostics(*sources);
  SourceMgrDiagnosticHandler diagnostics(*sources, &context);
  return parseSourceFile<ModuleOp>(sources, &context).get() != nullptr;
}

/// Runs passes over a file, as MLIR's own main does. Unlike it, checks that the
/// parsers can take the input, and writes the output only when it is complete.
static LogicalResult run(const std::string &input, const std::string &output,
                         DialectRegistry &registry,
                         const MlirOptMainConfig &config) {
  std::string message, text;
  auto fail = [](const llvm::Twine &what) {
    llvm::errs() << "dyna-opt: " << ::dyna::messageText(what.str()) << '\n';
    return failure();
  };
  auto outputId = ::dyna::fileIdOf(output);
  if (outputId && input != "-" && output != "-" &&
      outputId == ::dyna::fileIdOf(input))
    return fail("cannot write " + output + ": it is the input " + input +
                "; name another file with -o");
  auto buffer = mlir::dyna::openTextInput(input, &message);
  if (!buffer)
    return fail(message);
  inputText = buffer->getMemBufferRef();
  if (!config.shouldVerifyDiagnostics() &&
      mlir::dyna::hasLongLine(inputText.getBuffer())) {
    shortenLinesOf<mlir::dyna::DynaDialect>(registry);
    shortenLinesOf<dist::DistDialect>(registry);
    shortenLinesOf<exec::ExecDialect>(registry);
    if (config.inputSplitMarker().empty() &&
        !config.shouldUseExplicitModule() && !parses(registry, config))
      return failure();
  }
  if (output == "-")
    return MlirOptMain(llvm::outs(), std::move(buffer), registry, config);
  // Open the output first, so that a wrong path is reported before the work.
  auto file = ::dyna::OutputFile::replace(output);
  if (!file.isOk())
    return fail(file.status().message());
  llvm::raw_string_ostream stream(text);
  if (failed(MlirOptMain(stream, std::move(buffer), registry, config)))
    return failure();
  ::dyna::Status status = file->write(text);
  if (status.isOk())
    status = file->close();
  return status.isOk() ? success() : fail(status.message());
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::dyna::keepPlainNames(argc, argv);
  mlir::dyna::setVersion("dyna-opt");
  mlir::dyna::endCrashes();
  mlir::dyna::explainFatalErrors("dyna-opt");
  DialectRegistry registry;
  registry
      .insert<mlir::dyna::DynaDialect, dist::DistDialect, exec::ExecDialect>();
  // The output of the last phase can be input, too.
  registry.insert<LLVM::LLVMDialect, NVVM::NVVMDialect>();
  registerCanonicalizerPass();
  registerCSEPass();
  registerSymbolDCEPass();
  registerStripDebugInfoPass();
  mlir::dyna::cpu::registerCpuPipelines();
  mlir::dyna::cuda::registerCudaPipelines();
  mlir::dyna::registerPhases();
  mlir::dyna::registerFrontendPasses();

  cl::opt<std::string> layer(
      "print-layer", cl::value_desc("name"),
      cl::desc("Of --mlir-print-ir-after-all, print this layer and its "
               "functions alone"));
  cl::opt<std::string> role(
      "print-role", cl::value_desc("role"),
      cl::desc("Of --mlir-print-ir-after-all, print functions of this role "
               "alone"));
  registerCLIOptions("Dyna optimizer driver", registry);
  // Errors about a whole module would print all of it, and the location is
  // enough.
  findFlag("mlir-print-op-on-diagnostic").setInitialValue(false);
  showOurOptions({&layer, &role});
  auto [input, output] = parseCLIOptions(
      argc, argv,
      "Runs passes over modules of the dialects dyna, dist and exec\n");

  MlirOptMainConfig config = MlirOptMainConfig::createFromCLOptions();
  mlir::dyna::Selection selection{layer, role};
  cl::opt<bool> &printAfterAll = findFlag("mlir-print-ir-after-all");
  if (!selection.isAll() && printAfterAll) {
    printAfterAll = false;
    config.setPassPipelineSetupFn([=, all = config](PassManager &passes) {
      passes.enableIRPrinting(std::make_unique<SelectionPrinter>(selection));
      return all.setupPassPipeline(passes);
    });
  }
  if (config.shouldShowDialects() || config.shouldListPasses())
    return asMainReturnCode(MlirOptMain(argc, argv, input, output, registry));
  return asMainReturnCode(run(input, output, registry, config));
}
