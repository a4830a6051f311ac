//===- dyna-plan.cpp - Simulates plans on any cluster -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Plans mini-batches of given lengths as a training binary would, and simulates
// them with the costs of a described cluster. It uses one strategy, or several
// by ranges of lengths, and several schedules. The model is compiled up to its
// manifest, without code.
//
//===----------------------------------------------------------------------===//

#include "runtime/base/file/OutputFile.h"
#include "runtime/base/text/Printable.h"
#include "tools/LengthsFile.h"
#include "tools/ToolSupport.h"
#include "tools/dyna-plan/ElasticPlans.h"
#include "tools/dyna-plan/PlanModel.h"
#include "tools/dyna-plan/PlayedSteps.h"
#include "tools/dyna-plan/RangedSteps.h"
#include "tools/dyna-plan/SearchStrategies.h"
#include "tools/dyna-plan/SimulationFlag.h"
#include "tools/dyna-plan/SwitchFlag.h"
#include "llvm/Support/InitLLVM.h"

#include <set>

namespace dyna {
namespace {

/// Writes the outputs that were asked for beside the report.
Status writeOutputs(const PlanFlags &flags, StepOutputs &outputs) {
  if (outputs.hasTrace)
    DYNA_RETURN_IF_ERROR(replaceFile(flags.trace, outputs.trace.finish()));
  if (outputs.hasSvg)
    DYNA_RETURN_IF_ERROR(replaceFile(flags.svg, outputs.svg.finish()));
  return Status::ok();
}

/// Plans every request, with the notes of all, each once.
StatusOr<Reports> planRequests(const CostModel &costs, const Strategy &strategy,
                               const PlanFlags &flags, const StepLengths &steps,
                               StepOutputs &outputs) {
  DYNA_ASSIGN_OR_RETURN(auto conditions, parseSimulation(flags.simulate));
  DYNA_ASSIGN_OR_RETURN(auto requests, requestsOf(flags));
  Reports reports;
  std::set<std::string> said;
  for (auto &[name, request] : requests) {
    request.strategy = strategy;
    std::vector<std::string> notes;
    DYNA_ASSIGN_OR_RETURN(
        auto report,
        planSteps(costs, request, steps, conditions, name, outputs, notes));
    for (const std::string &note : notes)
      if (said.insert(note).second)
        llvm::errs() << "note: " << printable(note) << '\n';
    reports.emplace_back(name, std::move(report));
  }
  return reports;
}

/// Prints what --rebalance and --repack find. Returns the exit code.
int printElastic(const CostModel &costs, const Strategy &strategy,
                 const PlanFlags &flags, const StepLengths &steps,
                 StepOutputs &outputs) {
  std::vector<std::string> notes;
  outputs.endsWithoutRoom = true;
  auto report = planElastic(flags, costs, strategy, steps, outputs, notes);
  std::set<std::string> said;
  for (const std::string &note : notes)
    if (said.insert(note).second)
      llvm::errs() << "note: " << printable(note) << '\n';
  if (!report.isOk())
    return fail(report.status());
  if (Status status = writeOutputs(flags, outputs); !status.isOk())
    return fail(status);
  llvm::outs() << (flags.json ? elasticJson(*report)
                              : describeElastic(*report, flags.report));
  return 0;
}

/// Returns the strategy of --strategy, which may name one of a training
/// binary's.
StatusOr<Strategy> strategyOf(const PlanFlags &flags, const Model *binary) {
  std::vector<Strategy> known;
  if (binary) {
    DYNA_ASSIGN_OR_RETURN(known, compiledStrategies(*binary));
  }
  return readStrategy(
      "--strategy", flags.strategy.empty() ? "dp=1" : flags.strategy.getValue(),
      known);
}

int planStrategy(const PlanFlags &flags, const std::vector<int64_t> &lengths) {
  // A graph is compiled for its strategy, and a binary already has strategies.
  const bool isCompiled = isTrainingBinary(flags.model);
  StatusOr<Strategy> strategy{Strategy()};
  if (!isCompiled)
    strategy = strategyOf(flags, nullptr);
  if (!strategy.isOk())
    return fail(strategy.status());
  auto table = openTable(flags);
  if (!table.isOk())
    return fail(table.status());
  auto model = compileModel(flags, *strategy, *table);
  if (mlir::failed(model))
    return 2;
  if (isCompiled)
    strategy = strategyOf(flags, &*model);
  if (!strategy.isOk())
    return fail(strategy.status());
  auto costs = openCosts(*model, std::move(*table), flags);
  if (!costs.isOk())
    return fail(costs.status());
  if (!flags.costs.empty() && costs->table().device().memory_bytes() == 0)
    llvm::errs() << "note: " << printable(flags.costs)
                 << " has no memory_bytes, so plans may take any memory; a run "
                    "shares what its machine has free: give --rank-memory\n";
  StepOutputs outputs;
  outputs.hasTrace = !flags.trace.empty();
  outputs.hasSvg = !flags.svg.empty();
  outputs.hasPlanTimes = flags.planTimes;
  const StepLengths steps =
      dealSteps(lengths, model->manifest().facts().positions(), flags);
  if (flags.isElastic())
    return printElastic(*costs, *strategy, flags, steps, outputs);
  auto reports = planRequests(*costs, *strategy, flags, steps, outputs);
  if (!reports.isOk())
    return fail(reports.status());
  if (Status status = writeOutputs(flags, outputs); !status.isOk())
    return fail(status);
  print(*reports, costs->table().device().memory_bytes(), flags,
        sliceErrors(costs->table(), flags));
  return 0;
}

/// Checks the words before anything is compiled.
Status checkWords(const PlanFlags &flags) {
  DYNA_RETURN_IF_ERROR(parseSimulation(flags.simulate).status());
  DYNA_RETURN_IF_ERROR(checkElastic(flags));
  return requestsOf(flags).status();
}

int run(PlanFlags &flags) {
  if (Status status = flags.read(); !status.isOk())
    return fail(status);
  if (Status status = flags.check(); !status.isOk())
    return fail(status);
  if (Status status = checkWords(flags); !status.isOk())
    return fail(status);
  if (flags.switches.getNumOccurrences() > 0)
    return planSwitches(flags);
  std::vector<std::string> columns(flags.columns.begin(), flags.columns.end());
  auto lengths = readLengths(flags.lengths, columns);
  if (!lengths.isOk())
    return fail(lengths.status());
  if (!flags.ranges.empty())
    return planRanges(flags, *lengths);
  if (!flags.strategies.empty())
    return searchSets(flags, *std::move(lengths));
  if (flags.strategy == "search")
    return searchStrategy(flags, *lengths);
  return planStrategy(flags, *lengths);
}

} // namespace
} // namespace dyna

int main(int argc, char **argv) {
  llvm::InitLLVM init(argc, argv);
  mlir::dyna::keepPlainNames(argc, argv);
  mlir::dyna::hideLibraryOptions();
  mlir::dyna::setVersion("dyna-plan");
  mlir::dyna::endCrashes();
  mlir::dyna::explainFatalErrors("dyna-plan");
  dyna::PlanFlags flags;
  llvm::cl::HideUnrelatedOptions(flags.category);
  if (!mlir::dyna::parseToolOptions(
          argc, argv,
          "Plans training steps for lengths, and plays them on a cluster.\n"))
    return 2;
  return dyna::run(flags);
}
