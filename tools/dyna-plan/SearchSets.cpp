//===- SearchSets.cpp - The best strategies of a step ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/SearchSets.h"

#include "runtime/base/Printable.h"
#include "runtime/base/Text.h"
#include "runtime/planner/ChooseStrategies.h"
#include "runtime/planner/LackingCosts.h"
#include "tools/dyna-plan/PlanModel.h"
#include "llvm/Support/raw_ostream.h"

namespace dyna {

int searchSets(const PlanFlags &flags, std::vector<int64_t> lengths) {
  auto table = openTable(flags);
  if (!table.isOk())
    return fail(table.status());
  auto ranks = ranksToSearch(table->cluster(), 0);
  if (!ranks.isOk())
    return fail(ranks.status());
  auto logical = compileModel(flags, Strategy(), *table);
  if (mlir::failed(logical))
    return 2;
  const auto &facts = logical->manifest().facts();
  if (int64_t cut = cutLengths(lengths, facts.positions()))
    llvm::errs() << formatText(
        "note: %d of %d samples are cut at the model's %d positions\n", cut,
        lengths.size(), facts.positions());
  const std::string degrees = degreesToSearch(
      *ranks, {facts.heads(), facts.kv_heads(), facts.feed_forward()});
  auto model = logical->manifest().degrees_size() > 0
                   ? std::move(logical)
                   : compileDegrees(flags, degrees, *table);
  if (mlir::failed(model))
    return 2;
  auto costs = openCosts(*model, *table);
  if (!costs.isOk())
    return fail(costs.status());
  StrategySpace space;
  space.ranks = *ranks;
  space.memoryBytes = table->device().memory_bytes();
  space.tokensPerStep = flags.tokensPerBatch;
  space.tell = [](const std::string &next) {
    llvm::errs() << "search: " << next << '\n';
  };
  auto chosen = chooseStrategies(*costs, space, std::move(lengths));
  if (!chosen.isOk())
    return fail(chosen.status());
  if (std::string note = describeLackingMemory(*costs); !note.empty())
    llvm::errs() << "note: " << printable(note) << '\n';
  noteLacking(*costs, chosen->chosen());
  llvm::outs() << (flags.json ? chosen->json() : chosen->table());
  return 0;
}

} // namespace dyna
