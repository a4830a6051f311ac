//===- PrunedUnits.cpp - Lists heads and channels of a model --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/PrunedUnits.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {
namespace {

UnitList listOf(const Model &model, int layer,
                const plan::WeightGroups &groups) {
  UnitList list;
  list.count = groups.count();
  list.layer = layer;
  for (const plan::WeightGroups::Part &part : groups.parts()) {
    const int p = model.layer(layer).parameters(part.parameter());
    const int64_t size =
        part.dimension() == 0 ? model.rows(p) : model.rowElements(p);
    list.parts.push_back({p, part.dimension(), size / list.count});
  }
  return list;
}

const UnitList::Part *find(const UnitList &list, int parameter) {
  for (const UnitList::Part &part : list.parts)
    if (part.parameter == parameter)
      return &part;
  return nullptr;
}

/// Adds a list. It is merged with those that share a matrix with it.
Status add(const Model &model, UnitList list, std::vector<UnitList> &lists) {
  std::vector<UnitList> others;
  for (UnitList &other : lists) {
    bool isShared = false;
    for (const UnitList::Part &part : list.parts) {
      const UnitList::Part *same = find(other, part.parameter);
      if (!same)
        continue;
      isShared = true;
      if (same->dimension != part.dimension || other.count != list.count)
        return Status::invalidArgument(formatText(
            "pruning: layers share the matrix '%s', and cut it into other "
            "units: prune by structure=element",
            model.parameter(part.parameter).name()));
    }
    if (!isShared) {
      others.push_back(std::move(other));
      continue;
    }
    list.layer = std::min(list.layer, other.layer);
    std::vector<UnitList::Part> parts = std::move(other.parts);
    for (const UnitList::Part &part : list.parts)
      if (std::none_of(parts.begin(), parts.end(), [&](const auto &one) {
            return one.parameter == part.parameter;
          }))
        parts.push_back(part);
    list.parts = std::move(parts);
  }
  others.push_back(std::move(list));
  lists = std::move(others);
  return Status::ok();
}

} // namespace

const char *nameOf(PrunedStructure structure) {
  return structure == PrunedStructure::Element ? "element"
         : structure == PrunedStructure::Head  ? "head"
                                               : "channel";
}

int64_t UnitList::weights(const Model &model) const {
  int64_t weights = 0;
  for (const Part &part : parts)
    weights += model.elements(part.parameter) / count;
  return weights;
}

StatusOr<std::vector<UnitList>> prunedUnits(const Model &model,
                                            PrunedStructure structure) {
  const plan::WeightGroups::Kind wanted = structure == PrunedStructure::Head
                                              ? plan::WeightGroups::HEAD
                                              : plan::WeightGroups::CHANNEL;
  std::vector<UnitList> lists;
  for (int layer = 0; layer < model.layers(); ++layer)
    for (const plan::WeightGroups &groups : model.kind(layer).weight_groups())
      if (groups.kind() == wanted)
        DYNA_RETURN_IF_ERROR(add(model, listOf(model, layer, groups), lists));
  if (lists.empty())
    return Status::invalidArgument(formatText(
        "pruning: structure=%s: no layer of this program has any: %s; "
        "structure=element prunes single weights",
        nameOf(structure),
        structure == PrunedStructure::Head
            ? "a head is of an attention between matrix products"
            : "a channel is between two matrix products, with element-wise "
              "operations alone in between"));
  for (const UnitList &list : lists)
    for (const UnitList::Part &part : list.parts)
      if (model.isFrozen(part.parameter))
        return Status::invalidArgument(formatText(
            "pruning: structure=%s: '%s' is frozen, and only trained weights "
            "are pruned",
            nameOf(structure), model.parameter(part.parameter).name()));
  std::stable_sort(
      lists.begin(), lists.end(),
      [](const UnitList &a, const UnitList &b) { return a.layer < b.layer; });
  return lists;
}

std::vector<bool> parametersOf(const Model &model,
                               const std::vector<UnitList> &units) {
  std::vector<bool> parameters(static_cast<size_t>(model.parameters()));
  for (const UnitList &list : units)
    for (const UnitList::Part &part : list.parts)
      parameters[part.parameter] = true;
  return parameters;
}

} // namespace dyna
