//===- CheckOptions.cpp - Checks the options of dynac ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/CheckOptions.h"

#include "codegen/cuda/PtxEmitter.h"
#include "passes/orchestrate/Passes.h"
#include "passes/plan/Passes.h"
#include "passes/plan/StageCuts.h"
#include "passes/plan/StrategyChoice.h"
#include "runtime/base/text/Printable.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::dyna;

int mlir::dyna::usageError(const llvm::Twine &message) {
  // Names of files, and names inside files, may have any text of any length.
  llvm::errs() << "dynac: "
               << ::dyna::excerpt(::dyna::printable(message.str(), true),
                                  ::dyna::kMostMessageBytes)
               << '\n';
  return kUsageError;
}

bool mlir::dyna::searchesStrategies(const DriverOptions &options) {
  return options.strategies == "search";
}

namespace {

class OptionsCheck {
public:
  OptionsCheck(const DriverOptions &options, CheckedOptions &checked)
      : options(options), isas(checked.isas), strategies(checked.strategies) {}

  int checkOptions();

private:
  bool searches() const { return searchesStrategies(options); }
  int readStrategies();
  int checkTypes();
  int checkLibraries();
  int readInstructionSets();
  int checkPlanning();
  int checkRangedWords();
  int checkSearch();
  int checkRanges();
  int checkTarget();

  const DriverOptions &options;
  std::vector<InstructionSet> &isas;
  std::vector<std::string> &strategies;
};

} // namespace

int OptionsCheck::checkOptions() {
  static constexpr StringRef phases[] = {
      "parse", "differentiate", "distribute", "memory", "orchestrate",
      "plan",  "lower",         "embed",      "llvm"};
  if (!options.stopAfter.empty() &&
      !llvm::is_contained(phases, options.stopAfter))
    return usageError(
        "--stop-after expects parse, differentiate, distribute, memory, "
        "orchestrate, plan, lower, embed or llvm, but got '" +
        options.stopAfter + "'");
  if (int code = checkTypes())
    return code;
  if (options.optimizationLevel > 3)
    return usageError("-O expects 0 to 3, but got " +
                      llvm::Twine(options.optimizationLevel));
  if (int code = checkLibraries())
    return code;
  if (int code = readStrategies())
    return code;
  if (int code = checkPlanning())
    return code;
  if (int code = checkTarget())
    return code;
  return readInstructionSets();
}

int OptionsCheck::checkTypes() {
  if (!llvm::is_contained({"f64", "f32", "bf16"}, options.computeType))
    return usageError("--compute-type expects f64, f32 or bf16, but got '" +
                      options.computeType + "'");
  if (!llvm::is_contained({"", "f32", "bf16"}, options.gradients))
    return usageError("--gradients expects f32 or bf16, but got '" +
                      options.gradients + "'");
  if (options.gradients == "bf16" && options.computeType != "bf16")
    return usageError("--gradients=bf16 goes with --compute-type=bf16 alone; "
                      "with " +
                      options.computeType + " gradients are " +
                      options.computeType);
  if (options.gradients == "f32" && options.computeType == "f64")
    return usageError("--gradients=f32 would lose what --compute-type=f64 is "
                      "for; with it gradients are f64");
  if (!llvm::is_contained({"library", "generated"}, options.matmul))
    return usageError("--matmul expects library or generated, but got '" +
                      options.matmul + "'");
  if (options.matmul == "generated" && options.computeType == "bf16")
    return usageError(
        "--matmul=generated covers f32 and f64; bf16 products come "
        "from the library");
  return 0;
}

int OptionsCheck::checkLibraries() {
  std::vector<std::string> known =
      optionalLibraries(options.link.runtimeDirectory);
  for (const std::string &library : options.link.libraries)
    if (!llvm::is_contained(known, library))
      return usageError("--with=" + library + ": this build of Dyna has " +
                        (known.empty() ? "no optional library"
                                       : "only " + llvm::join(known, ", ")));
  return 0;
}

int OptionsCheck::readInstructionSets() {
  for (const std::string &name : options.instructionSets) {
    const InstructionSet *isa = findInstructionSet(name);
    if (!isa)
      return usageError("--isa expects avx512 or avx2, but got '" + name + "'");
    isas.push_back(*isa);
  }
  if (isas.empty())
    isas.assign(getInstructionSets().begin(), getInstructionSets().end());
  // The order of preference is fixed, whatever the order in the option.
  llvm::sort(isas, [](const InstructionSet &a, const InstructionSet &b) {
    return a.features > b.features;
  });
  return 0;
}

/// Reads --strategies. One strategy may go without a name, several may not.
int OptionsCheck::readStrategies() {
  if (options.strategies.empty() || searches())
    return 0;
  if (options.strategies.find(';') == std::string::npos) {
    auto strategy = ::dyna::parseStrategy(options.strategies);
    if (!strategy.isOk())
      return usageError("--strategies: " + strategy.status().message());
    strategies.push_back(::dyna::describeStrategy(*strategy));
    return 0;
  }
  auto parsed = ::dyna::parseStrategies(options.strategies);
  if (!parsed.isOk())
    return usageError("--strategies: " + parsed.status().message());
  for (const ::dyna::Strategy &strategy : *parsed)
    strategies.push_back(::dyna::describeStrategy(strategy));
  return 0;
}

/// Refuses words that ranges exclude, and those that are about ranges alone.
int OptionsCheck::checkRangedWords() {
  for (const auto &[name, text] : options.planWords) {
    if (name == "merge-ranges" && options.ranges.empty())
      return usageError("--merge-ranges is about --ranges: give these, too");
    if (name != "micro-batches" || options.ranges.empty())
      continue;
    if (llvm::Error error = checkRangedBatching(text))
      return usageError(llvm::toString(std::move(error)));
  }
  return 0;
}

/// Checks the flags for cuts and plans. A bad file of costs is found before the
/// work begins.
int OptionsCheck::checkPlanning() {
  if (options.stopAfter == "plan" && options.lengths.empty())
    return usageError("--stop-after=plan needs --lengths, the tokens of each "
                      "sample, such as --lengths=30,5,40");
  for (const auto &[name, text] : options.planWords) {
    const bool isSearched = name == "tokens-per-batch" || name == "slices";
    if (options.stopAfter != "plan" && !(searches() && isSearched))
      return usageError("--" + llvm::Twine(name) +
                        " goes with --stop-after=plan" +
                        (isSearched ? " or --strategies search" : "") +
                        ": a binary is told when it runs");
  }
  if (int code = checkRangedWords())
    return code;
  if (options.stopAfter != "plan" && !searches() && !options.lengths.empty())
    return usageError("--lengths goes with --stop-after=plan or --strategies "
                      "search: a binary makes plans of its data");
  if (int code = checkSearch())
    return code;
  if (int code = checkRanges())
    return code;
  if (options.costs.empty())
    return 0;
  if (strategies.empty() && !searches())
    return usageError("--costs cuts the strategies of --strategies into "
                      "stages: give some");
  if (llvm::Error error = checkCosts(options.costs))
    return usageError(llvm::toString(std::move(error)));
  return 0;
}

/// Checks the flags of a search. Without a search they must not be given.
int OptionsCheck::checkSearch() {
  if (!searches()) {
    for (auto [flag, isGiven] :
         {std::pair("--cluster", !options.cluster.empty()),
          {"--ranks", options.ranks != 0}})
      if (isGiven)
        return usageError(llvm::Twine(flag) +
                          " goes with --strategies search: a binary is told "
                          "when it runs");
    return 0;
  }
  if (options.stopAfter == "plan")
    return usageError("--strategies search and --stop-after=plan each read "
                      "--lengths: search first, then plan for the strategies "
                      "that it finds");
  if (!options.ranges.empty())
    return usageError(
        "--strategies search finds --ranges, too: leave them out");
  if (options.cluster.empty() && options.costs.empty())
    return usageError("--strategies search needs to know the devices: "
                      "--cluster such as a100-40g:4x8, or --costs");
  if (!options.cluster.empty() && !options.costs.empty())
    return usageError("--costs and --cluster both say what things take: give "
                      "one");
  if (options.lengths.empty())
    return usageError("--strategies search needs --lengths, those of the "
                      "samples: a file with one per line, or numbers");
  return 0;
}

int OptionsCheck::checkTarget() {
  if (!llvm::is_contained({"cpu", "cuda"}, options.target))
    return usageError("--target expects cpu or cuda, but got '" +
                      options.target + "'");
  if (options.target == "cpu") {
    if (!options.architectures.empty())
      return usageError("--arch goes with --target=cuda; the CPU has --isa");
    if (options.stopAfter == "embed")
      return usageError("--stop-after=embed goes with --target=cuda");
    return 0;
  }
  if (!options.instructionSets.empty())
    return usageError("--isa goes with --target=cpu; CUDA has --arch");
  if (options.sparse)
    return usageError("--sparse goes with --target=cpu: CUDA has no kernels "
                      "for sparse weights, and pruned ones are masked there");
  if (options.matmul != "library")
    return usageError("--matmul=" + options.matmul +
                      " goes with --target=cpu; CUDA's products are the "
                      "device's");
  if (llvm::is_contained(options.link.libraries, "mpi"))
    return usageError(
        "--with=mpi goes with --target=cpu: a run on CUDA has one "
        "device and one rank so far");
  if (!options.architectures.empty())
    if (auto known = cuda::readArchitectures(options.architectures); !known)
      return usageError("--arch " + llvm::toString(known.takeError()));
  isas.push_back(getLaunchingSet(options.architectures == "emulated"));
  return 0;
}

int OptionsCheck::checkRanges() {
  const bool isOrchestrated =
      options.stopAfter == "orchestrate" || options.stopAfter == "plan";
  if (options.stopAfter == "orchestrate" && options.ranges.empty() &&
      !searches())
    return usageError("--stop-after=orchestrate needs --ranges, the lengths "
                      "that each of --strategies has");
  if (options.ranges.empty())
    return 0;
  if (!isOrchestrated && !options.stopAfter.empty())
    return usageError("--ranges goes with a binary, or with "
                      "--stop-after=orchestrate or plan");
  if (strategies.empty())
    return usageError("--ranges names the strategies of --strategies: give "
                      "some");
  if (llvm::Error error = mlir::dyna::checkRanges(options.ranges, strategies))
    return usageError("--ranges: " + llvm::toString(std::move(error)));
  return 0;
}

int mlir::dyna::checkOptions(const DriverOptions &options,
                             CheckedOptions &checked) {
  return OptionsCheck(options, checked).checkOptions();
}
