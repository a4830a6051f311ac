//===- SwitchFlag.cpp - Plans switches from one strategy to another -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/SwitchFlag.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"
#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/SwitchTable.h"
#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/report/SwitchReport.h"
#include "runtime/planner/switch/PlanSwitch.h"
#include "tools/dyna-plan/PlanModel.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/raw_ostream.h"

#include <chrono>
#include <set>

namespace dyna {
namespace {

/// Returns the texts between the arrows: strategies, or names of some.
StatusOr<std::vector<std::string>> splitSwitch(llvm::StringRef text) {
  llvm::SmallVector<llvm::StringRef> parts;
  text.split(parts, "->");
  std::vector<std::string> texts;
  for (llvm::StringRef part : parts)
    texts.push_back(part.trim().str());
  if (texts.size() < 2)
    return Status::invalidArgument(
        "--switch expects strategies with -> between them, such as \"dp=4 -> "
        "dp=2,tp=2\", but got '" +
        text.str() + "'");
  return texts;
}

/// `known` are those that have names.
StatusOr<std::vector<Strategy>>
readStrategies(const std::vector<std::string> &texts,
               const std::vector<Strategy> &known) {
  std::vector<Strategy> strategies;
  for (const std::string &text : texts) {
    DYNA_ASSIGN_OR_RETURN(
        Strategy strategy,
        readStrategy("--switch", text, known, ", or name it in --strategies"));
    strategies.push_back(std::move(strategy));
  }
  return strategies;
}

/// Reads the known strategies: those given, and those that a binary was
/// compiled with.
StatusOr<std::vector<Strategy>> readKnown(const std::vector<std::string> &texts,
                                          std::vector<Strategy> given,
                                          const Model &model) {
  DYNA_ASSIGN_OR_RETURN(auto compiled, compiledStrategies(model));
  return readStrategies(texts, joinStrategies(std::move(given), compiled));
}

/// Returns the strategies of --strategies.
StatusOr<std::vector<Strategy>> givenStrategies(const PlanFlags &flags) {
  return flags.strategies.empty()
             ? StatusOr<std::vector<Strategy>>(std::vector<Strategy>())
             : parseStrategies(flags.strategies);
}

/// Returns the strategy as the user gave it, without its cut.
std::string shortName(Strategy strategy) {
  strategy.name.clear();
  return describeStrategy(strategy);
}

/// Makes the graphs of all strategies, each cut by cost if it names no cut.
StatusOr<std::vector<ExecutableGraph>>
makeGraphs(const CostModel &costs, const std::vector<Strategy> &strategies) {
  std::set<std::string> said;
  std::vector<ExecutableGraph> graphs;
  const int64_t devices = costs.cluster().devices();
  for (const Strategy &strategy : strategies) {
    DYNA_ASSIGN_OR_RETURN(StageCut cut, chooseLayers(costs, strategy));
    if (!cut.note.empty() && said.insert(cut.note).second)
      llvm::errs() << "note: " << printable(cut.note) << '\n';
    DYNA_ASSIGN_OR_RETURN(auto graph,
                          ExecutableGraph::create(costs.model(), cut.strategy));
    if (devices > 0 && graph.ranks() > devices)
      return Status::invalidArgument(
          formatText("strategy '%s' has %d ranks, but the cluster %d devices",
                     shortName(strategy), graph.ranks(), devices));
    graphs.push_back(std::move(graph));
  }
  return graphs;
}

StatusOr<std::vector<SwitchReport>>
reportAll(const CostModel &costs, const std::vector<Strategy> &strategies,
          bool isTimed) {
  DYNA_ASSIGN_OR_RETURN(auto graphs, makeGraphs(costs, strategies));
  for (size_t i = 0; i + 1 < graphs.size(); ++i)
    if (graphs[i].ranks() != graphs[i + 1].ranks())
      llvm::errs() << formatText(
          "note: '%s' has %d ranks, but '%s' has %d: this switch is planned, "
          "though a step switches between equally many\n",
          shortName(strategies[i]), graphs[i].ranks(),
          shortName(strategies[i + 1]), graphs[i + 1].ranks());
  std::vector<SwitchReport> reports;
  for (size_t i = 0; i + 1 < graphs.size(); ++i) {
    const SwitchNetwork network = networkOf(
        costs.cluster(), std::max(graphs[i].ranks(), graphs[i + 1].ranks()));
    const std::vector<SwitchTensor> tensors =
        valueTensors(graphs[i], nullptr, graphs[i + 1]);
    DYNA_ASSIGN_OR_RETURN(SwitchReport report,
                          reportSwitch(shortName(strategies[i]) + " -> " +
                                           shortName(strategies[i + 1]),
                                       tensors, network));
    if (isTimed) {
      const auto begin = std::chrono::steady_clock::now();
      DYNA_ASSIGN_OR_RETURN(SwitchPlan plan, planSwitch(tensors, network));
      DYNA_RETURN_IF_ERROR(checkSwitch(tensors, network.ranks, plan));
      report.planSeconds = std::chrono::duration<double>(
                               std::chrono::steady_clock::now() - begin)
                               .count();
    }
    reports.push_back(std::move(report));
  }
  return reports;
}

} // namespace

int planSwitches(const PlanFlags &flags) {
  auto texts = splitSwitch(flags.switches.getValue());
  if (!texts.isOk())
    return fail(texts.status());
  auto given = givenStrategies(flags);
  if (!given.isOk())
    return fail(given.status());
  auto table = openTable(flags);
  if (!table.isOk())
    return fail(table.status());
  // A binary has degrees and names of its own. A graph is compiled here, for
  // the strategies of the switch.
  const bool isCompiled = isTrainingBinary(flags.model);
  StatusOr<std::vector<Strategy>> strategies{std::vector<Strategy>()};
  if (!isCompiled)
    strategies = readStrategies(*texts, *given);
  if (!strategies.isOk())
    return fail(strategies.status());
  auto model = compileDegrees(flags, splittingStrategies(*strategies), *table);
  if (mlir::failed(model))
    return 2;
  if (isCompiled)
    strategies = readKnown(*texts, *std::move(given), *model);
  if (!strategies.isOk())
    return fail(strategies.status());
  auto costs = openCosts(*model, std::move(*table), flags);
  if (!costs.isOk())
    return fail(costs.status());
  auto reports = reportAll(*costs, *strategies, flags.planTimes);
  if (!reports.isOk())
    return fail(reports.status());
  if (flags.json) {
    for (const SwitchReport &report : *reports)
      llvm::outs() << report.json() << '\n';
    return 0;
  }
  llvm::outs() << describeSwitches(*reports);
  if (flags.report)
    for (const SwitchReport &report : *reports)
      llvm::outs() << describeSwitch(report);
  return 0;
}

} // namespace dyna
