//===- SavedWeights.cpp - Keeps the weights of losses in checkpoints ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/train/session/SavedWeights.h"

#include "runtime/base/text/Printable.h"
#include "runtime/base/text/Text.h"

#include <cmath>
#include <cstdlib>

namespace dyna {

static constexpr const char *key = "loss_weights";

/// Returns the fewest digits that tell a weight from others.
static std::string shortest(double weight) {
  for (const char *format : {"%.6g", "%.9g"})
    if (std::string text = formatText(format, weight);
        std::strtod(text.c_str(), nullptr) == weight)
      return text;
  return formatText("%.17g", weight);
}

SavedWeights SavedWeights::of(const Model &model) {
  SavedWeights weights;
  const std::vector<int> layers = model.lossLayers();
  if (layers.size() < 2)
    return weights;
  for (size_t loss = 0; loss < layers.size(); ++loss)
    weights.byLayer.emplace_back(model.layer(layers[loss]).name(),
                                 model.lossWeight(static_cast<int>(loss)));
  return weights;
}

void SavedWeights::addTo(JsonObject &state) const {
  if (byLayer.empty())
    return;
  JsonObject weights;
  for (const auto &[layer, weight] : byLayer)
    weights.add(layer, weight);
  state.add(key, weights);
}

bool SavedWeights::readFrom(const JsonValue &state) {
  const JsonValue *weights = state.find(key);
  if (!weights)
    return true;
  if (!weights->isObject())
    return false;
  for (size_t i = 0; i < weights->items.size(); ++i) {
    const JsonValue &weight = weights->items[i];
    if (weight.kind != JsonValue::Kind::Number ||
        !std::isfinite(weight.number) || weight.number < 0)
      return false;
    byLayer.emplace_back(weights->keys[i], weight.number);
  }
  return true;
}

std::string SavedWeights::differences(const SavedWeights &here) const {
  std::string text;
  for (const auto &[layer, weight] : byLayer)
    for (const auto &[name, now] : here.byLayer)
      if (name == layer && now != weight)
        text +=
            formatText("%s%s is %s there and %s here", text.empty() ? "" : ", ",
                       printable(layer), shortest(weight), shortest(now));
  return text;
}

} // namespace dyna
