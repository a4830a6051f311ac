//===- FindStrategies.cpp - Implements dynac --strategies search ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/aot/FindStrategies.h"

#include "codegen/aot/CheckOptions.h"
#include "passes/Pipelines.h"
#include "passes/plan/StrategyChoice.h"
#include "runtime/base/text/Printable.h"
#include "runtime/plan/graph/ExecutableGraph.h"

#include "mlir/Pass/PassManager.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace mlir::dyna;

static FailureOr<FoundTexts> refuse(llvm::Error error) {
  usageError(llvm::toString(std::move(error)));
  return failure();
}

static StrategyChoice choiceOf(const DriverOptions &options) {
  StrategyChoice choice;
  choice.cluster = options.cluster;
  choice.costs = options.costs;
  choice.ranks = options.ranks;
  choice.lengths = options.lengths;
  if (options.tokensPerBatch != 0)
    choice.tokensPerBatch = options.tokensPerBatch;
  for (const auto &[name, text] : options.planWords)
    if (name == "slices")
      choice.slices = text;
  choice.tell = [](const std::string &next) {
    llvm::errs() << "search: " << next << '\n';
  };
  return choice;
}

/// Builds the phases up to the memory phase, for these degrees.
static void buildPhases(OpPassManager &passes, const DriverOptions &options,
                        const std::string &degrees) {
  DifferentiatePhaseOptions differentiate;
  differentiate.gradients = options.gradients;
  buildDifferentiatePhase(passes, differentiate);
  DistributePhaseOptions distribute;
  distribute.strategy = degrees;
  if (!degrees.empty())
    buildDistributePhase(passes, distribute);
  MemoryPhaseOptions memory;
  memory.target = options.target;
  buildMemoryPhase(passes, memory);
}

FailureOr<FoundTexts> mlir::dyna::findStrategies(ModuleOp module,
                                                 const DriverOptions &options) {
  const StrategyChoice choice = choiceOf(options);
  llvm::Expected<std::string> degrees = degreesToSearch(module, choice);
  if (!degrees)
    return refuse(degrees.takeError());
  // Compiling the chosen strategies repeats these diagnostics.
  ScopedDiagnosticHandler quiet(
      module->getContext(), [](Diagnostic &diagnostic) {
        return success(diagnostic.getSeverity() == DiagnosticSeverity::Warning);
      });
  OwningOpRef<ModuleOp> copy = module.clone();
  PassManager passes(module->getContext(), ModuleOp::getOperationName());
  buildPhases(passes, options, *degrees);
  if (failed(passes.run(*copy)))
    return failure();
  llvm::Expected<ChosenTexts> chosen = chooseStrategies(*copy, choice);
  if (!chosen)
    return refuse(chosen.takeError());
  for (const std::string &note : chosen->notes)
    llvm::errs() << "note: " << ::dyna::printable(note) << '\n';
  llvm::errs() << chosen->considered;
  auto parsed = ::dyna::parseStrategies(chosen->strategies);
  if (!parsed.isOk())
    return refuse(llvm::createStringError(llvm::inconvertibleErrorCode(),
                                          parsed.status().message()));
  FoundTexts found;
  for (const ::dyna::Strategy &strategy : *parsed)
    found.strategies.push_back(::dyna::describeStrategy(strategy));
  found.ranges = chosen->ranges;
  return found;
}
