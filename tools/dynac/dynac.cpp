//===- dynac.cpp - From a module to a native training binary -- -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/CompilerDriver.h"
#include "frontends/Frontends.h"
#include "runtime/base/Files.h"
#include "runtime/base/Printable.h"
#include "tools/LengthsFile.h"
#include "tools/ToolSupport.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

namespace cl = llvm::cl;

namespace {
/// What `dynac --help` lists.
struct Flags {
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
  cl::opt<std::string> strategies{
      "strategies",
      cl::desc("Strategies whose tensor degrees to compile, such as "
               "'a: dp=2,tp=2,pp=2; b: dp=4,tp=2,sp=1'; or search: those with "
               "which steps of --lengths are the shortest on --cluster, and "
               "their --ranges"),
      cl::value_desc("strategies"), cl::cat(category)};
  cl::opt<std::string> ranges{
      "ranges",
      cl::desc("Lengths of the samples that each strategy has in a step, such "
               "as 'a: 0-64; b: 65-': what the binary does where neither "
               "--strategy nor --ranges says otherwise"),
      cl::value_desc("ranges"), cl::cat(category)};
  cl::opt<std::string> costs{
      "costs",
      cl::desc("What layers take, measured, to cut the strategies into stages "
               "by, and to search by (default: every run estimates it)"),
      cl::value_desc("file"), cl::cat(category)};
  cl::opt<std::string> cluster{
      "cluster",
      cl::desc("Described devices that --strategies search is for, and nodes x "
               "devices of each, such as a100-40g:4x8"),
      cl::value_desc("devices"), cl::cat(category)};
  cl::opt<int64_t> ranks{
      "ranks",
      cl::desc("Ranks that --strategies search is for (default: all devices of "
               "--cluster)"),
      cl::value_desc("number"), cl::cat(category)};
  cl::opt<int64_t> tokensPerBatch{
      "tokens-per-batch",
      cl::desc("Tokens of a step, about, that --strategies search is for "
               "(default: 65536)"),
      cl::value_desc("number"), cl::cat(category)};
  cl::opt<std::string> lengths{
      "lengths",
      cl::desc("Tokens of the samples that --stop-after=plan plans for, or "
               "--strategies search is for: 30,5,40, or a file with one per "
               "line or with columns that its first line names"),
      cl::value_desc("tokens or file"), cl::cat(category)};
  cl::list<std::string> columns{
      "length-columns",
      cl::desc("Columns of that file to add up (default: the one that is "
               "called tokens or ends in _tokens)"),
      cl::value_desc("names"), cl::CommaSeparated, cl::cat(category)};
  cl::opt<std::string> microBatches{
      "micro-batches",
      cl::desc("What the micro-batches of --stop-after=plan are made of, as a "
               "binary's --micro-batches says"),
      cl::value_desc("word"), cl::cat(category)};
  cl::opt<std::string> rankMemory{
      "rank-memory",
      cl::desc("Bytes of each rank that the plans of --stop-after=plan fit, "
               "such as 40MiB, as a binary's --rank-memory says"),
      cl::value_desc("bytes"), cl::cat(category)};
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

  /// Fails where --lengths are none.
  dyna::StatusOr<mlir::dyna::DriverOptions> read() const {
    // As a variable that is not set gives it.
    for (const cl::opt<std::string> *flag : {&strategies, &ranges, &arch})
      if (flag->getNumOccurrences() > 0 && flag->empty())
        return dyna::Status::invalidArgument("--" + flag->ArgStr.str() +
                                             " is given, but empty");
    mlir::dyna::DriverOptions options;
    options.extend = mlir::dyna::registerFamilies;
    options.input = input;
    options.output = output;
    options.computeType = computeType;
    options.gradients = gradients;
    options.strategies = strategies;
    options.ranges = ranges;
    options.costs = costs;
    options.cluster = cluster;
    options.ranks = ranks;
    options.tokensPerBatch = tokensPerBatch;
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
    options.microBatches = microBatches;
    options.rankMemory = rankMemory;
    options.stopAfter = stopAfter;
    options.dumpDirectory = dumpDir;
    options.timePasses = timePasses;
    options.link.libraries.assign(with.begin(), with.end());
    options.target = target;
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

/// Installed: <prefix>/lib/dyna; in a build tree: <build>/lib.
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
