//===- LackingCosts.cpp - Finds what a file of costs lacks ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/estimate/LackingCosts.h"

#include "runtime/planner/estimate/StageCosts.h"

#include <algorithm>

namespace dyna {
namespace {

/// Returns true if a step updates parameters of this layer. Parameters that it
/// shares with an earlier layer count for that one.
bool isUpdated(const Model &model, int layer) {
  auto uses = [&](int other, int parameter) {
    const auto &list = model.layer(other).parameters();
    return std::find(list.begin(), list.end(), parameter) != list.end();
  };
  for (int parameter : model.layer(layer).parameters()) {
    if (model.isFrozen(parameter))
      continue;
    int owner = 0;
    while (owner < layer && !uses(owner, parameter))
      ++owner;
    if (owner == layer)
      return true;
  }
  return false;
}

std::vector<cost::Direction> functionsOf(const Model &model, int layer,
                                         const AskedCosts &asked) {
  std::vector<cost::Direction> functions;
  for (const RecomputeModes &modes : asked.recompute)
    for (cost::Direction pass : trainingPasses(
             model.kind(layer), modeOf(modes, layer), asked.splitBackward))
      functions.push_back(pass);
  // Estimates ignore norms of gradients: without measurements these cost
  // nothing.
  if (asked.update && isUpdated(model, layer))
    functions.push_back(cost::UPDATE);
  return functions;
}

bool isOfDegree(const CostKey &key, int tp, bool sp) {
  return key.tp == tp && key.sp == sp;
}

bool isKindMeasured(const CostTable &table, const CostKey &wanted) {
  return std::any_of(table.curves().begin(), table.curves().end(),
                     [&](const auto &curve) {
                       return curve.first.kind == wanted.kind &&
                              isOfDegree(curve.first, wanted.tp, wanted.sp);
                     });
}

} // namespace

std::vector<RecomputeModes> possibleModes(const RecomputeModes &recompute,
                                          bool anyMode) {
  std::vector<RecomputeModes> modes = {recompute};
  if (anyMode)
    for (plan::Recompute mode :
         {plan::RECOMPUTE_SELECTIVE, plan::RECOMPUTE_FULL})
      modes.push_back({mode});
  return modes;
}

std::vector<std::string> lackingCosts(const CostModel &costs,
                                      const Strategy &strategy,
                                      const AskedCosts &asked) {
  const Model &model = costs.model();
  std::vector<std::string> names;
  for (int layer = 0; layer < model.layers(); ++layer) {
    const KindAt at = {model.layer(layer).kind(), strategy.tp, strategy.sp};
    for (cost::Direction function : functionsOf(model, layer, asked)) {
      if (costs.isMeasured(at, function))
        continue;
      const CostKey key = costs.keyOf(at, function);
      std::string name = isKindMeasured(costs.table(), key)
                             ? describeCostKey(key)
                             : describeKindOf(key);
      if (std::find(names.begin(), names.end(), name) == names.end())
        names.push_back(std::move(name));
    }
  }
  return names;
}

bool hasCostsOfDegree(const CostModel &costs, const Strategy &strategy) {
  const auto &curves = costs.table().curves();
  return std::any_of(curves.begin(), curves.end(), [&](const auto &curve) {
    return isOfDegree(curve.first, strategy.tp, strategy.sp);
  });
}

std::string joinNames(const std::vector<std::string> &names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i)
    text += (i == 0 ? "" : i + 1 < names.size() ? ", " : " and ") + names[i];
  return text;
}

std::string describeEstimate(const CostModel &costs) {
  return "estimated from flops and bytes of device '" +
         costs.table().device().name() + "'";
}

std::string describeLacking(const CostModel &costs, const Strategy &strategy,
                            const AskedCosts &asked,
                            const std::vector<std::string> &said) {
  if (costs.table().name().empty() || costs.table().curves().empty())
    return "";
  std::vector<std::string> names = lackingCosts(costs, strategy, asked);
  names.erase(std::remove_if(names.begin(), names.end(),
                             [&](const std::string &name) {
                               return std::find(said.begin(), said.end(),
                                                name) != said.end();
                             }),
              names.end());
  return names.empty() ? ""
                       : costs.table().name() + " lacks " + joinNames(names) +
                             ": " + describeEstimate(costs);
}

std::string describeLackingMemory(const CostModel &costs) {
  return costs.table().device().memory_bytes() > 0
             ? ""
             : "device '" + costs.table().device().name() +
                   "' has no memory_bytes: no strategy takes too much memory";
}

std::vector<std::string>
describeLacking(const CostModel &costs,
                const std::vector<Strategy> &strategies) {
  std::vector<std::string> notes;
  for (const Strategy &strategy : strategies) {
    AskedCosts asked;
    asked.update = true;
    if (strategy.recompute)
      asked.recompute = {{*strategy.recompute}};
    std::string note = describeLacking(costs, strategy, asked);
    if (!note.empty() &&
        std::find(notes.begin(), notes.end(), note) == notes.end())
      notes.push_back(std::move(note));
  }
  return notes;
}

} // namespace dyna
