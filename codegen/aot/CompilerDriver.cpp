//===- CompilerDriver.cpp - Runs the phases of dynac ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/CompilerDriver.h"

#include "codegen/aot/CheckOptions.h"
#include "codegen/aot/FindStrategies.h"
#include "codegen/aot/ObjectEmitter.h"
#include "codegen/aot/PrivateFolder.h"
#include "codegen/cpu/Pipelines.h"
#include "codegen/cuda/Passes.h"
#include "codegen/cuda/Pipelines.h"
#include "dialects/dist/Dist.h"
#include "dialects/dyna/Dyna.h"
#include "dialects/dyna/text/ShortDiagnostics.h"
#include "dialects/dyna/text/TextInput.h"
#include "passes/Pipelines.h"
#include "passes/memory/value/Target.h"
#include "passes/orchestrate/Passes.h"
#include "passes/plan/ManifestBuilder.h"
#include "passes/plan/Passes.h"
#include "passes/plan/StageCuts.h"
#include "runtime/abi/Abi.h"
#include "runtime/base/file/FileId.h"
#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Printable.h"
#include "runtime/plan/graph/ExecutableGraph.h"

#include "mlir/IR/Verifier.h"
#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "mlir/Support/FileUtilities.h"
#include "mlir/Support/Timing.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <thread>

using namespace mlir;
using namespace mlir::dyna;

namespace {

class Driver {
public:
  explicit Driver(const DriverOptions &options)
      : options(options), ranges(options.ranges) {}

  int run();

private:
  bool searches() const { return searchesStrategies(options); }
  int openInput();
  /// Fails if writing to `output` would destroy what is compiled.
  int checkNoInput(const std::string &output);
  int checkOutput();
  LogicalResult runPhases();
  LogicalResult runModulePhases();
  /// Searches strategies, and sets --strategies and --ranges to the result.
  LogicalResult searchStrategies();
  LogicalResult makeManifest();
  LogicalResult lowerVariants();
  LogicalResult lowerCuda();
  LogicalResult stopAtLlvm();
  LogicalResult checkStages();
  LogicalResult cutStages();
  /// Adds a note about compiled strategies that the target cannot run yet.
  void noteRanks() const;
  void buildOrchestratePhase(OpPassManager &passes) const;
  void buildPlanPhase(OpPassManager &passes) const;
  LogicalResult runPhase(StringRef name,
                         llvm::function_ref<void(OpPassManager &)> build);
  LogicalResult emitBinary();
  LogicalResult emitObjects(std::vector<ObjectBytes> &objects,
                            std::vector<std::string> &texts);
  ::dyna::Status writeObjects(const std::vector<ObjectBytes> &objects,
                              const std::vector<std::string> &texts,
                              std::vector<std::string> &paths);
  LogicalResult print(StringRef path, llvm::function_ref<void(raw_ostream &)>);
  std::string outputPath(StringRef suffix) const;
  std::vector<std::string> objectSuffixes() const;

  const DriverOptions &options;
  DialectRegistry registry;
  // Threads are on, because objects of several variants are emitted at once,
  // and translation makes attributes and types in this context.
  MLIRContext context;
  llvm::SourceMgr sources;
  OwningOpRef<ModuleOp> module;
  ::dyna::plan::Manifest manifest;
  std::vector<InstructionSet> isas;
  std::vector<std::string> strategies;
  std::string ranges;
  std::vector<OwningOpRef<ModuleOp>> otherModules; ///< of `isas` but the first
  std::vector<ModuleOp> variants;        ///< lowered, in the order of `isas`
  std::unique_ptr<PrivateFolder> folder; ///< of a program's parts
  TimingScope timing;
  bool stopped = false;
  /// Exit code of a failure. Failures up to the memory phase are faults of the
  /// module.
  int code = kUsageError;
};

} // namespace

int Driver::openInput() {
  std::string message;
  auto buffer = openTextInput(options.input, &message);
  if (!buffer)
    return usageError(message);
  // The input may be a configuration instead of its module. A module may begin
  // with `{-#`.
  llvm::StringRef rest = buffer->getBuffer().ltrim();
  if (rest.consume_front("{") && rest.ltrim().starts_with("\""))
    return usageError("'" + options.input +
                      "' is JSON, not a module; translate a model's "
                      "configuration first: dyna-translate --from-config " +
                      options.input + " -o model.mlir");
  sources.AddNewSourceBuffer(std::move(buffer), llvm::SMLoc());
  if (!options.dumpDirectory.empty())
    if (std::error_code error =
            llvm::sys::fs::create_directories(options.dumpDirectory))
      return usageError("cannot make --dump-dir '" + options.dumpDirectory +
                        "': " + error.message());
  return 0;
}

int Driver::checkNoInput(const std::string &output) {
  auto id = ::dyna::fileIdOf(output);
  for (const std::string &input :
       {options.input, options.costs, options.lengthsFile})
    if (id && input != "-" && id == ::dyna::fileIdOf(input))
      return usageError("cannot write " + output + ": it is the input " +
                        input + "; name another file with -o");
  return 0;
}

/// Checks the output, so that a wrong path is found before the work is done. No
/// thread may have been started yet.
int Driver::checkOutput() {
  bool prints = !options.stopAfter.empty();
  if (prints && (options.output.empty() || options.output == "-"))
    return 0;
  std::string path = outputPath("");
  if (prints) {
    if (int code = checkNoInput(path))
      return code;
    ::dyna::Status status = ::dyna::OutputFile::checkReplace(path);
    return status.isOk() ? 0 : usageError(status.message());
  }
  if (path == "-")
    return usageError("a program cannot go to standard output: name a file "
                      "with -o");
  std::vector<std::string> files = {path};
  for (const std::string &suffix : objectSuffixes())
    if (options.keepObjects)
      files.push_back(outputPath(suffix));
  for (const std::string &file : files) {
    if (int code = checkNoInput(file))
      return code;
    auto place = ::dyna::findOutputPlace(file);
    if (!place.isOk())
      return usageError(place.status().message());
    if (*place == ::dyna::OutputPlace::Stream ||
        *place == ::dyna::OutputPlace::Pipe)
      return usageError("cannot write " + file +
                        ": it is a device or a pipe; name a file with -o");
  }
  auto made = PrivateFolder::create(path);
  if (!made)
    return usageError(llvm::toString(made.takeError()));
  folder = std::move(*made);
  return 0;
}

/// Returns the suffixes of the objects: of the instruction sets, then of the
/// program's tables.
std::vector<std::string> Driver::objectSuffixes() const {
  std::vector<std::string> suffixes;
  for (const InstructionSet &isa : isas)
    suffixes.push_back("." + isa.name.str() + ".o");
  suffixes.push_back(".program.o");
  return suffixes;
}

std::string Driver::outputPath(StringRef suffix) const {
  std::string base = options.output;
  if (base.empty())
    base = options.input == "-" ? "train"
                                : llvm::sys::path::stem(options.input).str();
  return base + suffix.str();
}

LogicalResult Driver::print(StringRef path,
                            llvm::function_ref<void(raw_ostream &)> write) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  write(stream);
  ::dyna::Status status = ::dyna::writeOutput(path.str(), text);
  if (status.isOk())
    return success();
  code = usageError(status.message());
  return failure();
}

LogicalResult
Driver::runPhase(StringRef name,
                 llvm::function_ref<void(OpPassManager &)> build) {
  PassManager passes(&context, ModuleOp::getOperationName());
  TimingScope scope = timing.nest(name);
  passes.enableTiming(scope);
  build(passes);
  if (failed(passes.run(*module)))
    return failure();
  auto write = [&](raw_ostream &stream) { module->print(stream); };
  if (!options.dumpDirectory.empty()) {
    SmallString<256> path(options.dumpDirectory);
    llvm::sys::path::append(path, name + ".mlir");
    if (failed(print(path, write)))
      return failure();
  }
  if (options.stopAfter != name)
    return success();
  if (failed(print(options.output.empty() ? "-" : StringRef(options.output),
                   write)))
    return failure();
  stopped = true;
  return success();
}

/// Stages that the binary would refuse are refused here, in its words.
LogicalResult Driver::checkStages() {
  for (ModelOp model : module->getOps<ModelOp>())
    for (const std::string &strategy : strategies) {
      ::dyna::Status status =
          ::dyna::checkStages(*::dyna::parseStrategy(strategy),
                              llvm::range_size(model.getOps<CallOp>()));
      if (!status.isOk()) {
        usageError(status.message());
        return failure();
      }
    }
  return success();
}

/// Cuts stages by `--costs` for strategies without layers, so that the binary
/// needs no file for it.
LogicalResult Driver::cutStages() {
  std::vector<std::string> notes;
  if (llvm::Error error =
          mlir::dyna::cutStages(*module, options.costs, strategies, notes)) {
    usageError(llvm::toString(std::move(error)));
    return failure();
  }
  for (const std::string &note : notes)
    llvm::errs() << "note: " << ::dyna::printable(note) << '\n';
  return success();
}

void Driver::noteRanks() const {
  if (options.target == "cpu")
    return;
  std::string several;
  for (const std::string &text : strategies)
    if (auto strategy = ::dyna::parseStrategy(text);
        strategy.isOk() && strategy->ranks() > 1)
      several += (several.empty() ? "" : ", ") + strategy->name;
  if (!several.empty())
    llvm::errs() << "note: strategies of several ranks do not run on CUDA so "
                    "far, where a run has one device and one rank: "
                 << ::dyna::printable(several) << '\n';
}

void Driver::buildOrchestratePhase(OpPassManager &passes) const {
  OrchestrateOptions orchestrate;
  orchestrate.strategies = llvm::join(strategies, "; ");
  orchestrate.ranges = ranges;
  orchestrate.costs = options.costs;
  passes.addPass(createOrchestrate(orchestrate));
}

void Driver::buildPlanPhase(OpPassManager &passes) const {
  auto words = options.planWords;
  if (!options.costs.empty())
    words.emplace_back("costs", options.costs);
  // An orchestrated module names its strategies, which take turns in a step.
  if (strategies.empty() || !ranges.empty())
    return passes.addPass(createPlan(words, options.lengths));
  words.emplace_back("strategy", "");
  for (const std::string &strategy : strategies) {
    words.back().second = strategy;
    passes.addPass(createPlan(words, options.lengths));
  }
}

LogicalResult Driver::searchStrategies() {
  TimingScope scope = timing.nest("search");
  FailureOr<FoundTexts> found = findStrategies(*module, options);
  if (failed(found))
    return failure();
  strategies = std::move(found->strategies);
  ranges = std::move(found->ranges);
  return success();
}

/// Runs phases up to the memory phase, or to `--stop-after`.
LogicalResult Driver::runModulePhases() {
  ConvertPhaseOptions convert;
  convert.type = options.computeType;
  if (failed(runPhase("parse",
                      [&](OpPassManager &passes) {
                        if (options.prepare)
                          options.prepare(passes);
                        buildConvertPhase(passes, convert);
                      })) ||
      stopped)
    return success(stopped);
  if (searches() && failed(searchStrategies()))
    return failure();
  if (failed(checkStages()))
    return failure();
  DifferentiatePhaseOptions differentiate;
  differentiate.gradients = options.gradients;
  differentiate.freezable = options.freezable;
  if (failed(runPhase("differentiate",
                      [&](OpPassManager &passes) {
                        buildDifferentiatePhase(passes, differentiate);
                      })) ||
      stopped)
    return success(stopped);
  DistributePhaseOptions distribute;
  distribute.strategy = llvm::join(strategies, "; ");
  if ((!strategies.empty() || options.stopAfter == "distribute") &&
      failed(runPhase("distribute", [&](OpPassManager &passes) {
        if (!strategies.empty())
          buildDistributePhase(passes, distribute);
      })))
    return failure();
  MemoryPhaseOptions memory;
  memory.target = options.target;
  memory.sparse = options.sparse;
  return stopped ? success() : runPhase("memory", [&](OpPassManager &passes) {
    buildMemoryPhase(passes, memory);
  });
}

/// Makes the manifest, and refuses here what the binary would refuse when it
/// starts.
LogicalResult Driver::makeManifest() {
  FailureOr<::dyna::plan::Manifest> built = buildManifest(*module, strategies);
  if (failed(built))
    return failure();
  manifest = std::move(*built);
  manifest.set_ranges(ranges);
  // Records the target that memory was planned for, and that code generation
  // asks.
  manifest.set_target(stringifyTargetName(targetOf(*module).name).str());
  if (auto fits = ::dyna::Model::create(manifest); !fits.isOk())
    return module->emitError("no binary can run this model: ")
           << fits.status().message();
  const bool isGenerated =
      options.target == "cpu" && options.computeType == "f64";
  manifest.set_matmul(isGenerated ? "generated" : options.matmul);
  return success();
}

LogicalResult Driver::stopAtLlvm() {
  stopped = true;
  std::optional<std::string> text = printLlvmIr(*module);
  if (!text)
    return failure();
  return print(options.output.empty() ? "-" : StringRef(options.output),
               [&](raw_ostream &stream) { stream << *text; });
}

/// Lowers to the host's code with the kernels embedded.
LogicalResult Driver::lowerCuda() {
  cuda::EmbedKernelsOptions embed;
  if (!options.architectures.empty())
    embed.arch = options.architectures;
  embed.dump = options.dumpDirectory;
  if (failed(runPhase("lower", cuda::buildLowerCudaPipeline)) || stopped)
    return success(stopped);
  if (failed(runPhase("embed",
                      [&](OpPassManager &passes) {
                        passes.addPass(cuda::createEmbedKernels(embed));
                      })) ||
      stopped)
    return success(stopped);
  if (options.stopAfter == "llvm")
    return stopAtLlvm();
  variants.push_back(module.get());
  return success();
}

/// Lowers the code once per variant, with vectors as wide as its registers.
/// Printed and dumped code is that of the best variant.
LogicalResult Driver::lowerVariants() {
  for (size_t i = 1; i < isas.size(); ++i)
    otherModules.push_back(module->clone());
  if (options.target == "cuda")
    return lowerCuda();
  auto lower = [&](const InstructionSet &isa) {
    return [&](OpPassManager &passes) {
      cpu::LowerCpuOptions lowering;
      lowering.matmul = options.matmul;
      lowering.vectorBits = (isa.features & DYNA_FEATURE_AVX512) ? 512 : 256;
      cpu::buildLowerCpuPipeline(passes, lowering);
    };
  };
  if (failed(runPhase("lower", lower(isas.front()))) || stopped)
    return success(stopped);
  if (options.stopAfter == "llvm")
    return stopAtLlvm();
  variants.push_back(module.get());
  TimingScope scope = timing.nest("lower the other variants");
  for (auto [i, other] : llvm::enumerate(otherModules)) {
    PassManager passes(&context, ModuleOp::getOperationName());
    lower(isas[i + 1])(passes);
    if (failed(passes.run(*other)))
      return failure();
    variants.push_back(other.get());
  }
  return success();
}

LogicalResult Driver::runPhases() {
  if (failed(runModulePhases()))
    return success(stopped);
  noteRanks();
  if (stopped)
    return success();
  if (!options.costs.empty() && failed(cutStages()))
    return failure();
  const bool isOrchestrated =
      options.stopAfter == "orchestrate" || options.stopAfter == "plan";
  if (isOrchestrated && !ranges.empty() &&
      (failed(runPhase(
           "orchestrate",
           [&](OpPassManager &passes) { buildOrchestratePhase(passes); })) ||
       stopped))
    return success(stopped);
  if (options.stopAfter == "plan")
    return runPhase("plan",
                    [&](OpPassManager &passes) { buildPlanPhase(passes); });
  if (failed(makeManifest()))
    return failure();
  code = 1;
  if (failed(lowerVariants()) || stopped)
    return success(stopped);
  return emitBinary();
}

/// Emits the objects of each instruction set and, last, of the program's
/// tables.
LogicalResult Driver::emitObjects(std::vector<ObjectBytes> &objects,
                                  std::vector<std::string> &texts) {
  // Use a thread for each variant, with its own copy of the module and LLVM
  // context.
  std::vector<LogicalResult> results(isas.size(), failure());
  std::vector<std::thread> threads;
  prepareTranslation(*module);
  objects.resize(isas.size() + 1);
  texts.resize(isas.size());
  for (size_t i = 0; i < isas.size(); ++i)
    threads.emplace_back([&, i] {
      EmitOptions emit;
      emit.optimizationLevel = options.optimizationLevel;
      if (!options.dumpDirectory.empty())
        emit.optimizedText = &texts[i];
      results[i] = emitVariantObject(variants[i], isas[i], emit, objects[i]);
    });
  for (std::thread &thread : threads)
    thread.join();
  if (llvm::any_of(results, [](LogicalResult r) { return failed(r); }))
    return failure();
  return emitProgramObject(*module, manifest, isas, objects.back());
}

/// Writes the objects into the private folder, and the dumps where they belong.
::dyna::Status Driver::writeObjects(const std::vector<ObjectBytes> &objects,
                                    const std::vector<std::string> &texts,
                                    std::vector<std::string> &paths) {
  for (auto [object, suffix] : llvm::zip(objects, objectSuffixes())) {
    paths.push_back(folder->file("program" + suffix));
    DYNA_ASSIGN_OR_RETURN(auto file, ::dyna::OutputFile::create(paths.back()));
    DYNA_RETURN_IF_ERROR(file.write(object.data(), object.size()));
    DYNA_RETURN_IF_ERROR(file.close());
  }
  if (options.dumpDirectory.empty())
    return ::dyna::Status::ok();
  for (auto [isa, text] : llvm::zip(isas, texts)) {
    SmallString<256> path(options.dumpDirectory);
    llvm::sys::path::append(path, "optimised." + isa.name + ".ll");
    DYNA_RETURN_IF_ERROR(::dyna::replaceFile(path.str().str(), text));
  }
  return ::dyna::Status::ok();
}

/// Emits the binary. All files are made in the private folder; only complete
/// and wanted ones leave it.
LogicalResult Driver::emitBinary() {
  std::vector<ObjectBytes> objects;
  std::vector<std::string> texts, paths;
  TimingScope objectTime = timing.nest("objects");
  if (failed(emitObjects(objects, texts)))
    return failure();
  ::dyna::Status status = writeObjects(objects, texts, paths);
  objectTime.stop();
  TimingScope linkTime = timing.nest("link");
  std::string program = folder->file("program");
  if (status.isOk())
    if (llvm::Error error =
            linkTrainingBinary(paths, program, outputPath(""), options.link))
      status =
          ::dyna::Status::invalidArgument(llvm::toString(std::move(error)));
  for (auto [path, suffix] : llvm::zip(paths, objectSuffixes()))
    if (options.keepObjects && status.isOk())
      status = ::dyna::moveToOutput(path, outputPath(suffix));
  if (status.isOk())
    status = ::dyna::moveToOutput(program, outputPath(""));
  if (status.isOk())
    return success();
  code = usageError(status.message());
  return failure();
}

int Driver::run() {
  CheckedOptions checked;
  if (int code = checkOptions(options, checked))
    return code;
  isas = std::move(checked.isas);
  strategies = std::move(checked.strategies);
  if (int code = openInput())
    return code;
  if (int code = checkOutput())
    return code;
  if (options.stopAfter.empty())
    if (llvm::Error error = checkLinking(options.link))
      return usageError(llvm::toString(std::move(error)));
  DefaultTimingManager timingManager;
  timingManager.setEnabled(options.timePasses);
  timing = timingManager.getRootScope();

  registry.insert<DynaDialect, dist::DistDialect>();
  context.appendDialectRegistry(registry);
  context.loadDialect<DynaDialect>();
  // The location is enough; the text of a whole module would hide the message.
  context.printOpOnDiagnostic(false);
  shortenDiagnostics(sources);
  SourceMgrDiagnosticHandler diagnostics(sources, &context);
  {
    TimingScope scope = timing.nest("parser");
    module = parseSourceFile<ModuleOp>(sources, &context);
  }
  bool ok = module && succeeded(runPhases());
  timing.stop();
  return ok ? 0 : code;
}

int mlir::dyna::runDriver(const DriverOptions &options) {
  return Driver(options).run();
}
