//===- dynac.cpp - Compiles a module to a training binary -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/CompilerDriver.h"
#include "frontends/Passes.h"
#include "runtime/base/file/Files.h"
#include "runtime/base/text/Printable.h"
#include "tools/LengthsFile.h"
#include "tools/ToolSupport.h"
#include "tools/WordFlag.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;

using dyna::Word;
using dyna::WordFlag;
using dyna::WordList;

namespace {
/// Options that `dynac --help` lists.
struct Flags {
  static constexpr const char *forPlan = "for --stop-after=plan";

  cl::OptionCategory category{"dynac options"};
  cl::opt<std::string> input{cl::Positional, cl::desc("<model.mlir>"),
                             cl::cat(category)};
  cl::opt<std::string> output{"o",
                              cl::desc("Output file (default: the model's, "
                                       "without its ending)"),
                              cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> computeType{
      "compute-type", cl::desc("Type that layers compute in: f64, f32 or bf16"),
      cl::init("f32"), cl::cat(category)};
  cl::opt<std::string> gradients{
      "gradients",
      cl::desc("Type in which gradients are added up: f32, or under "
               "--compute-type=bf16 also bf16 (default f32, under f64 f64)"),
      cl::value_desc("type"), cl::cat(category)};
  WordFlag strategies{
      Word::Strategies, category,
      "their tensor degrees are compiled; or search: strategies with which "
      "steps of --lengths are the shortest on --cluster, and their --ranges"};
  WordFlag ranges{Word::Ranges, category,
                  "the binary has them unless a run is given --strategy or "
                  "--ranges"};
  WordFlag costs{Word::Costs, category};
  WordFlag cluster{Word::Cluster, category, "for --strategies search"};
  WordFlag ranks{Word::Ranks, category, "for --strategies search"};
  WordFlag lengths{Word::Lengths, category,
                   "for --stop-after=plan or --strategies search"};
  WordList columns{Word::LengthColumns, category, "", /*hasCommas=*/true};
  WordFlag tokensPerBatch{Word::TokensPerBatch, category,
                          "for --stop-after=plan or --strategies search"};
  WordFlag microBatches{Word::MicroBatches, category, forPlan};
  WordFlag tokensPerMicroBatch{Word::TokensPerMicroBatch, category, forPlan};
  WordFlag inFlight{Word::InFlight, category, forPlan};
  WordFlag splitBackward{Word::SplitBackward, category, forPlan};
  WordFlag slices{Word::Slices, category,
                  "for --stop-after=plan or --strategies search"};
  WordFlag recompute{Word::Recompute, category, forPlan};
  WordFlag pipeline{Word::Pipeline, category, forPlan};
  WordFlag rankMemory{Word::RankMemory, category, forPlan};
  WordFlag mergeRanges{Word::MergeRanges, category, forPlan};
  cl::opt<std::string> stopAfter{
      "stop-after",
      cl::desc("Print the module after a phase and stop: parse, differentiate, "
               "distribute, memory, orchestrate, plan, lower, embed, llvm"),
      cl::value_desc("phase"), cl::cat(category)};
  cl::opt<std::string> dumpDir{
      "dump-dir", cl::desc("Write the module after every phase to this folder"),
      cl::value_desc("folder"), cl::cat(category)};
  cl::opt<bool> timePasses{
      "time-passes", cl::desc("Print the time passes take"), cl::cat(category)};
  cl::list<std::string> with{
      "with",
      cl::desc("Optional libraries to link in: mpi and redis, where they were "
               "found"),
      cl::CommaSeparated, cl::cat(category)};
  cl::opt<std::string> target{"target",
                              cl::desc("What layers run on: cpu, or cuda"),
                              cl::init("cpu"), cl::cat(category)};
  cl::opt<std::string> arch{
      "arch",
      cl::desc("Of --target=cuda: some of sm_80, sm_90, sm_100 and sm_120 "
               "(default: all), or emulated"),
      cl::value_desc("names"), cl::cat(category)};
  cl::list<std::string> isas{
      "isa", cl::desc("Instruction sets to generate code for (avx512, avx2)"),
      cl::CommaSeparated, cl::cat(category)};
  cl::opt<std::string> matmul{
      "matmul", cl::desc("Matrix products: library (oneDNN) or generated"),
      cl::init("library"), cl::cat(category)};
  cl::opt<bool> freezable{
      "freezable",
      cl::desc("Compile layers that a run can also freeze and thaw, for "
               "--freeze"),
      cl::cat(category)};
  cl::opt<bool> sparse{
      "sparse",
      cl::desc("Compile layers that also accept sparse weights, for --prune"),
      cl::cat(category)};
  cl::opt<unsigned> level{"O", cl::desc("Optimisation level 0 to 3"),
                          cl::Prefix, cl::init(2), cl::cat(category)};
  cl::opt<std::string> linker{"linker", cl::desc("Compiler driver that links"),
                              cl::value_desc("program"), cl::cat(category)};
  cl::opt<std::string> runtimeDir{
      "runtime-dir", cl::desc("Folder of the runtime's static libraries"),
      cl::value_desc("folder"), cl::cat(category)};
  cl::opt<bool> keepObjects{"keep-objects",
                            cl::desc("Keep the object files beside the output"),
                            cl::cat(category)};
  cl::opt<bool> verbose{"verbose",
                        cl::desc("Show the linker's command and messages"),
                        cl::cat(category)};

  /// Reads the words of planning that are given.
  dyna::Status readPlanWords(dyna::PlanningValues &values,
                             mlir::dyna::DriverOptions &options) const {
    for (const WordFlag *flag :
         {&tokensPerBatch, &microBatches, &tokensPerMicroBatch, &inFlight,
          &splitBackward, &slices, &recompute, &pipeline, &rankMemory,
          &mergeRanges}) {
      DYNA_RETURN_IF_ERROR(flag->read(values));
      if (flag->isGiven())
        options.planWords.emplace_back(flag->ArgStr.str(), flag->getValue());
    }
    return dyna::Status::ok();
  }

  /// Fails where --lengths are none.
  dyna::StatusOr<mlir::dyna::DriverOptions> read() const {
    dyna::PlanningValues values;
    for (const WordFlag *flag : {&strategies, &ranges, &costs, &cluster, &ranks,
                                 &lengths, &tokensPerBatch})
      DYNA_RETURN_IF_ERROR(flag->read(values));
    DYNA_RETURN_IF_ERROR(columns.read(values));
    // An unset shell variable would give an empty value.
    if (arch.getNumOccurrences() > 0 && arch.empty())
      return dyna::Status::invalidArgument("--arch is given, but empty");
    mlir::dyna::DriverOptions options;
    options.prepare = [](mlir::OpPassManager &passes) {
      passes.addPass(mlir::dyna::createCheckFamilies());
    };
    options.input = input;
    options.output = output;
    options.computeType = computeType;
    options.gradients = gradients;
    options.strategies = strategies;
    options.ranges = ranges;
    options.costs = costs;
    options.cluster = cluster;
    options.ranks = values.ranks;
    if (tokensPerBatch.isGiven())
      options.tokensPerBatch = values.tokensPerBatch;
    if (!lengths.empty()) {
      DYNA_ASSIGN_OR_RETURN(
          options.lengths,
          dyna::readLengths(lengths, {columns.begin(), columns.end()}));
      if (dyna::fileExists(lengths))
        options.lengthsFile = lengths;
    } else if (!columns.empty()) {
      return dyna::Status::invalidArgument(
          "--length-columns needs --lengths FILE");
    }
    DYNA_RETURN_IF_ERROR(readPlanWords(values, options));
    options.stopAfter = stopAfter;
    options.dumpDirectory = dumpDir;
    options.timePasses = timePasses;
    options.link.libraries.assign(with.begin(), with.end());
    options.target = target;
    options.sparse = sparse;
    options.freezable = freezable;
    options.architectures = arch;
    options.instructionSets.assign(isas.begin(), isas.end());
    options.matmul = matmul;
    options.optimizationLevel = level;
    options.keepObjects = keepObjects;
    if (target == "cuda")
      options.link.target = arch == "emulated" ? "emulated" : "cuda";
    options.link.driver = linker;
    options.link.verbose = verbose;
    options.link.runtimeDirectory = runtimeDir;
    return options;
  }
};
} // namespace

/// Finds the runtime. Installed: <prefix>/lib/dyna; in a build tree:
/// <build>/lib.
static std::string findRuntime(const char *program) {
  std::string self = llvm::sys::fs::getMainExecutable(
      program, reinterpret_cast<void *>(findRuntime));
  llvm::SmallString<256> root(
      llvm::sys::path::parent_path(llvm::sys::path::parent_path(self)));
  llvm::sys::path::append(root, "lib", "dyna");
  if (!llvm::sys::fs::exists(root))
    llvm::sys::path::remove_filename(root);
  return std::string(root);
}

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::dyna::keepPlainNames(argc, argv);
  mlir::dyna::hideLibraryOptions();
  mlir::dyna::setVersion("dynac");
  mlir::dyna::endCrashes();
  mlir::dyna::explainFatalErrors("dynac");
  Flags flags;
  cl::HideUnrelatedOptions(flags.category);
  if (!mlir::dyna::parseToolOptions(argc, argv,
                                    "Compiles a dyna model to a native "
                                    "training binary.\n"))
    return 2;
  if (flags.input.empty()) {
    llvm::errs() << "dynac: no input: give a model, as in `dynac model.mlir -o "
                    "train`\n";
    return 2;
  }
  auto options = flags.read();
  if (!options.isOk()) {
    llvm::errs() << "dynac: " << dyna::messageText(options.status().message())
                 << '\n';
    return 2;
  }
  if (options->link.runtimeDirectory.empty())
    options->link.runtimeDirectory = findRuntime(argv[0]);
  return mlir::dyna::runDriver(*options);
}
