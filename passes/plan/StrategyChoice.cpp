//===- StrategyChoice.cpp - Chooses the strategies and ranges to compile --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/StrategyChoice.h"

#include "dialects/dyna/Dyna.h"
#include "passes/plan/Passes.h"
#include "runtime/base/text/Text.h"
#include "runtime/planner/cut/batching/Batchings.h"
#include "runtime/planner/estimate/LackingCosts.h"
#include "runtime/planner/request/LengthRanges.h"
#include "runtime/planner/search/ChooseStrategies.h"
#include "runtime/planner/search/SearchSingles.h"
#include "runtime/planner/search/SizedSteps.h"

using namespace mlir;
using ::dyna::formatText;
using ::dyna::Status;
using ::dyna::StatusOr;

static llvm::Error refuse(const Status &status) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 status.message());
}

static StatusOr<::dyna::CostTable>
openTable(const mlir::dyna::StrategyChoice &choice) {
  return choice.costs.empty() ? ::dyna::CostTable::described(choice.cluster)
                              : ::dyna::CostTable::read(choice.costs);
}

llvm::Expected<std::string>
mlir::dyna::degreesToSearch(ModuleOp module, const StrategyChoice &choice) {
  auto table = openTable(choice);
  if (!table.isOk())
    return refuse(table.status());
  auto ranks = ::dyna::ranksToSearch(table->cluster(), choice.ranks);
  if (!ranks.isOk())
    return refuse(ranks.status());
  auto models = module.getOps<ModelOp>();
  if (models.empty())
    return refuse(Status::invalidArgument(
        "the module has no dyna.model to find strategies for"));
  FactsAttr facts = (*models.begin()).getFacts();
  return ::dyna::degreesToSearch(
      *ranks, {facts.getHeads(), facts.getKvHeads(), facts.getFeedForward()});
}

llvm::Expected<mlir::dyna::ChosenTexts>
mlir::dyna::chooseStrategies(ModuleOp module, const StrategyChoice &choice) {
  FailureOr<::dyna::Model> model = modelOf(module);
  if (failed(model))
    return refuse(Status::invalidArgument(
        "no strategies can be found for the module above"));
  auto table = openTable(choice);
  if (!table.isOk())
    return refuse(table.status());
  ::dyna::StrategySpace space;
  auto ranks = ::dyna::ranksToSearch(table->cluster(), choice.ranks);
  if (!ranks.isOk())
    return refuse(ranks.status());
  space.ranks = *ranks;
  space.memoryBytes = table->device().memory_bytes();
  space.tokensPerStep = choice.tokensPerBatch;
  space.tell = choice.tell;
  space.request.slices = ::dyna::slicesOfSearch(choice.slices);
  auto costs = ::dyna::CostModel::create(*model, std::move(*table));
  if (!costs.isOk())
    return refuse(costs.status());
  std::vector<int64_t> lengths = choice.lengths;
  const int64_t positions = model->manifest().facts().positions();
  ChosenTexts texts;
  if (int64_t cut = ::dyna::cutLengths(lengths, positions))
    texts.considered =
        formatText("%d of %d samples are cut at the model's %d positions\n",
                   cut, lengths.size(), positions);
  auto chosen = ::dyna::chooseStrategies(*costs, space, std::move(lengths));
  if (!chosen.isOk())
    return refuse(chosen.status());
  texts.strategies = chosen->strategies();
  texts.ranges = chosen->ranges();
  texts.considered += chosen->table(/*withFlags=*/false);
  if (!choice.slices.empty())
    texts.notes.push_back("the binary keeps strategies and ranges alone: run "
                          "it with --slices " +
                          choice.slices + ", for which they were found");
  if (std::string note = costs->describeOtherType(); !note.empty())
    texts.notes.push_back(std::move(note));
  if (std::string note = ::dyna::describeLackingMemory(*costs); !note.empty())
    texts.notes.push_back(std::move(note));
  for (std::string &note : ::dyna::describeLacking(*costs, chosen->chosen()))
    texts.notes.push_back(std::move(note));
  return texts;
}

llvm::Error mlir::dyna::checkRangedBatching(const std::string &name) {
  const auto batching = ::dyna::findBatching(name);
  const Status status =
      batching.isOk() ? ::dyna::checkRanged(*batching) : batching.status();
  return status.isOk() ? llvm::Error::success() : refuse(status);
}

llvm::Error mlir::dyna::checkRanges(const std::string &ranges,
                                    ArrayRef<std::string> strategies) {
  std::vector<::dyna::Strategy> parsed;
  std::vector<std::string> names;
  for (const std::string &text : strategies) {
    auto strategy = ::dyna::parseStrategy(text);
    if (!strategy.isOk())
      return refuse(strategy.status());
    names.push_back(strategy->name);
    parsed.push_back(std::move(*strategy));
  }
  auto all = ::dyna::parseLengthRanges(ranges, names);
  if (!all.isOk())
    return refuse(all.status());
  const ::dyna::Strategy &first = parsed[all->ranges().front().strategy];
  for (const ::dyna::LengthRange &range : all->ranges())
    if (const ::dyna::Strategy &other = parsed[range.strategy];
        other.ranks() != first.ranks())
      return refuse(Status::invalidArgument(formatText(
          "strategy '%s' has %d ranks, but '%s' has %d: those that a step "
          "switches between need equally many",
          other.name, other.ranks(), first.name, first.ranks())));
  return llvm::Error::success();
}
