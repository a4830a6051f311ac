//===- FreezeLayers.cpp - Models with some layers frozen ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/model/FreezeLayers.h"

#include "runtime/base/text/Text.h"

#include <algorithm>

namespace dyna {
namespace {

const std::string &baseOf(const plan::LayerKind &kind) {
  return kind.variant_of().empty() ? kind.name() : kind.variant_of();
}

/// Returns the kind of the same layer that has, or lacks, gradients of parameters and of its
/// input; -1 if there is none.
int findVariant(const Model &model, const plan::LayerKind &kind, bool isFrozen,
                bool stopsGradient) {
  const plan::Manifest &manifest = model.manifest();
  for (int k = 0; k < manifest.kinds_size(); ++k)
    if (const plan::LayerKind &other = manifest.kinds(k);
        baseOf(other) == baseOf(kind) && other.frozen() == isFrozen &&
        other.stops_gradient() == stopsGradient)
      return k;
  return -1;
}

/// Fails if only some of the layers that use a parameter are frozen.
Status checkTies(const Model &model, const FrozenLayers &frozen) {
  std::vector<int> firstUse(model.parameters(), -1);
  for (int l = 0; l < model.layers(); ++l)
    for (int p : model.layer(l).parameters()) {
      int &first = firstUse[p];
      first = first < 0 ? l : first;
      if (frozen[first] != frozen[l] && !model.isFrozen(p))
        return Status::invalidArgument(formatText(
            "freezes layer '%s' and not '%s', but both use '%s': freeze both "
            "layers or neither",
            model.layer(frozen[l] ? l : first).name(),
            model.layer(frozen[l] ? first : l).name(),
            model.parameter(p).name()));
    }
  return Status::ok();
}

} // namespace

/// Returns, by layer, whether it has a parameter that trains.
static std::vector<bool> findTrained(const Model &compiled,
                                     const FrozenLayers &frozen) {
  std::vector<bool> trained;
  for (int l = 0; l < compiled.layers(); ++l) {
    const auto &used = compiled.layer(l).parameters();
    trained.push_back(!frozen[l] &&
                      std::any_of(used.begin(), used.end(), [&](int p) {
                        return !compiled.isFrozen(p);
                      }));
  }
  return trained;
}

StatusOr<Model> freezeLayers(const Model &compiled,
                             const FrozenLayers &frozen) {
  DYNA_RETURN_IF_ERROR(checkTies(compiled, frozen));
  const std::vector<bool> trained = findTrained(compiled, frozen);
  if (std::find(trained.begin(), trained.end(), true) == trained.end())
    return Status::invalidArgument(
        "freezes all layers that have parameters, so that nothing is left to "
        "train: leave out at least one");
  std::vector<int> kinds;
  std::vector<bool> parked(compiled.parameters(), false);
  bool learns = false; // a layer so far
  for (int l = 0; l < compiled.layers(); ++l) {
    for (int p : compiled.layer(l).parameters())
      parked[p] = frozen[l] && !compiled.isFrozen(p);
    const bool isFrozen =
        !trained[l] && compiled.layer(l).parameters_size() > 0;
    const int kind =
        findVariant(compiled, compiled.kind(l), isFrozen, l > 0 && !learns);
    if (kind < 0)
      return Status::invalidArgument(formatText(
          "this binary has no functions for layer '%s' %s: compile the model "
          "with dynac --freezable",
          compiled.layer(l).name(),
          isFrozen ? "while it is frozen" : "behind frozen layers"));
    kinds.push_back(kind);
    learns = learns || trained[l];
  }
  return compiled.withKinds(kinds, std::move(parked));
}

int layersForwardAlone(const Model &model) {
  int layers = 0;
  while (layers < model.layers() && !hasBackward(model.kind(layers)))
    ++layers;
  return layers;
}

//===----------------------------------------------------------------------===//
// Names
//===----------------------------------------------------------------------===//

static int findLayer(const Model &model, const std::string &name) {
  for (int l = 0; l < model.layers(); ++l)
    if (model.layer(l).name() == name)
      return l;
  return -1;
}

/// Returns the first and the last layer of an entry, -1 for what there is not. A '-' may
/// be a part of a name.
static std::pair<int, int> findRange(const Model &model,
                                     const std::string &entry) {
  if (const int layer = findLayer(model, entry); layer >= 0)
    return {layer, layer};
  for (size_t at = entry.find('-'); at != std::string::npos;
       at = entry.find('-', at + 1)) {
    const int first = findLayer(model, entry.substr(0, at));
    const int last = findLayer(model, entry.substr(at + 1));
    if (first >= 0 && last >= 0)
      return {first, last};
  }
  return {-1, -1};
}

StatusOr<FrozenLayers> parseLayers(const Model &model,
                                   const std::string &list) {
  FrozenLayers layers(model.layers(), false);
  for (size_t begin = 0; begin <= list.size();) {
    const size_t end = std::min(list.find('+', begin), list.size());
    const std::string entry = list.substr(begin, end - begin);
    begin = end + 1;
    const auto [first, last] = findRange(model, entry);
    if (first < 0)
      return Status::invalidArgument(formatText(
          "'%s' is no layer and no range of layers: the layers are %s, and a "
          "range is FIRST-LAST",
          entry, describeLayers(model, FrozenLayers(model.layers(), true))));
    if (last < first)
      return Status::invalidArgument(formatText(
          "the last layer of the range '%s' comes before the first one",
          entry));
    std::fill(layers.begin() + first, layers.begin() + last + 1, true);
  }
  return layers;
}

std::string describeLayers(const Model &model, const FrozenLayers &layers) {
  std::string text;
  for (size_t l = 0; l < layers.size(); ++l) {
    if (!layers[l])
      continue;
    const size_t first = l;
    while (l + 1 < layers.size() && layers[l + 1])
      ++l;
    text += text.empty() ? "" : "+";
    text += model.layer(static_cast<int>(first)).name();
    if (l > first)
      text += (l == first + 1 ? "+" : "-") +
              model.layer(static_cast<int>(l)).name();
  }
  return text.empty() ? "none" : text;
}

} // namespace dyna
