//===- PrunedParameters.cpp - Selects the pruned parameters ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/elastic/prune/PrunedParameters.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {
namespace {

bool isMatrix(const Model &model, int parameter) {
  return model.parameter(parameter).shape_size() > 1;
}

/// Returns true for trained matrices. Frozen weights keep their values, so they
/// are not pruned.
bool canBePruned(const Model &model, int parameter) {
  return isMatrix(model, parameter) && !model.isFrozen(parameter);
}

/// Returns true if the layer takes tokens or gives a loss.
bool isAtAnEnd(const Model &model, int layer) {
  if (model.outputsOf(layer).empty() || model.lossOf(layer) >= 0)
    return true;
  for (int edge : model.inputsOf(layer))
    if (model.edge(edge).producer < 0)
      return true;
  return false;
}

std::vector<bool> weightsOfBlocks(const Model &model) {
  std::vector<bool> pruned(static_cast<size_t>(model.parameters()));
  for (int layer = 0; layer < model.layers(); ++layer)
    for (int p : model.layer(layer).parameters())
      pruned[p] = canBePruned(model, p);
  for (int layer = 0; layer < model.layers(); ++layer)
    if (isAtAnEnd(model, layer))
      for (int p : model.layer(layer).parameters())
        pruned[p] = false;
  return pruned;
}

Status addPattern(const Model &model, const std::string &pattern,
                  std::vector<bool> &pruned) {
  bool isFound = false, isName = false, isFrozen = false;
  std::string example;
  for (int p = 0; p < model.parameters(); ++p) {
    const std::string &name = model.parameter(p).name();
    if (canBePruned(model, p))
      example = name;
    if (!matchesPattern(pattern, name))
      continue;
    isName = true;
    isFrozen = isFrozen || (isMatrix(model, p) && model.isFrozen(p));
    if (canBePruned(model, p))
      pruned[p] = isFound = true;
  }
  if (isFound)
    return Status::ok();
  return Status::invalidArgument(formatText(
      "pruning: 'params=%s': %s; a matrix of this model is '%s', and * stands "
      "for any characters",
      pattern,
      isFrozen ? "it is frozen, and only trained weights are pruned"
      : isName ? "only matrices are pruned, and this is none"
               : "there is no such parameter",
      example));
}

} // namespace

bool matchesPattern(const std::string &pattern, const std::string &name) {
  // Entry i is true if the pattern so far matches the first i characters.
  std::vector<bool> ends(name.size() + 1);
  ends[0] = true;
  for (char character : pattern) {
    std::vector<bool> next(name.size() + 1);
    bool any = false;
    for (size_t i = 0; i <= name.size(); ++i) {
      any = any || ends[i];
      next[i] = character == '*'
                    ? any
                    : i > 0 && ends[i - 1] && name[i - 1] == character;
    }
    ends = std::move(next);
  }
  return ends.back();
}

StatusOr<std::vector<bool>> prunedParameters(const Model &model,
                                             const std::string &patterns) {
  std::vector<bool> pruned(static_cast<size_t>(model.parameters()));
  if (patterns.empty())
    pruned = weightsOfBlocks(model);
  for (size_t begin = 0; begin < patterns.size();) {
    const size_t end = std::min(patterns.find('+', begin), patterns.size());
    DYNA_RETURN_IF_ERROR(
        addPattern(model, patterns.substr(begin, end - begin), pruned));
    begin = end + 1;
  }
  if (std::find(pruned.begin(), pruned.end(), true) != pruned.end())
    return pruned;
  return Status::invalidArgument(
      "pruning: no layer between the first and the last one has a matrix: give "
      "params= with the names of those that are to be pruned");
}

std::vector<std::vector<int>> prunedGroups(const Model &model,
                                           bool isPerLayer) {
  std::vector<int> firstLayer(static_cast<size_t>(model.parameters()), 0);
  if (isPerLayer)
    for (int layer = model.layers() - 1; layer >= 0; --layer)
      for (int p : model.layer(layer).parameters())
        firstLayer[p] = layer;
  std::vector<std::vector<int>> groups;
  for (int layer = 0; layer < model.layers(); ++layer) {
    std::vector<int> group;
    for (int p = 0; p < model.parameters(); ++p)
      if (model.hasMask(p) && firstLayer[p] == layer)
        group.push_back(p);
    if (!group.empty())
      groups.push_back(std::move(group));
  }
  return groups;
}

} // namespace dyna
