//===- StageCuts.cpp - Cuts layers into stages by costs -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/plan/StageCuts.h"

#include "passes/plan/Passes.h"
#include "runtime/planner/graph/PartitionLayers.h"

using namespace mlir;

static llvm::Error refuse(const ::dyna::Status &status) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(),
                                 status.message());
}

llvm::Error mlir::dyna::checkCosts(StringRef path) {
  auto table = ::dyna::CostTable::read(path.str());
  return table.isOk() ? llvm::Error::success() : refuse(table.status());
}

llvm::Error mlir::dyna::cutStages(ModuleOp module, StringRef path,
                                  std::vector<std::string> &strategies,
                                  std::vector<std::string> &notes) {
  FailureOr<::dyna::Model> model = modelOf(module);
  if (failed(model))
    return refuse(::dyna::Status::invalidArgument(
        "the module above cannot be cut into stages"));
  auto costs = ::dyna::CostModel::open(*model, path.str());
  if (!costs.isOk())
    return refuse(costs.status());
  if (std::string note = costs->describeOtherType(); !note.empty())
    notes.push_back(std::move(note));
  for (std::string &text : strategies) {
    auto strategy = ::dyna::parseStrategy(text);
    if (!strategy.isOk())
      return refuse(strategy.status());
    auto cut = ::dyna::chooseLayers(*costs, std::move(*strategy));
    if (!cut.isOk())
      return refuse(cut.status());
    if (cut->note.empty())
      continue;
    const std::string &name = cut->strategy.name;
    notes.push_back((name.empty() ? "" : "strategy '" + name + "': ") +
                    cut->note);
    text = ::dyna::describeStrategy(cut->strategy);
  }
  return llvm::Error::success();
}
