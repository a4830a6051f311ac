//===- SavedWeights.h - Keeps the weights of losses in checkpoints --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The weights of a model's losses are no part of its hash, since no plan depends on them.
// They change what a run trains, so state.json has them:
//
//     "loss_weights": {"h.3.exit": 0.3, "head": 1}
//
// A run that is resumed by a program with other weights goes on with those of the program,
// and says so. Optimizer state stays, so weights may be changed while a model trains.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_SAVEDWEIGHTS_H
#define DYNA_RUNTIME_TRAIN_SAVEDWEIGHTS_H

#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/plan/model/Model.h"

#include <string>
#include <utility>
#include <vector>

namespace dyna {

struct SavedWeights {
  /// Layers that give a loss, and its weight. Empty for a model without exits, and in
  /// checkpoints of earlier versions.
  std::vector<std::pair<std::string, double>> byLayer;

  static SavedWeights of(const Model &model);
  /// Adds "loss_weights" to state.json, if there are any.
  void addTo(JsonObject &state) const;
  /// Reads what `addTo` has written. Returns false if it is not valid.
  bool readFrom(const JsonValue &state);
  /// Returns the weights that differ, such as "h.3.exit is 0.3 there and 0.5 here". Compares
  /// layers that both have.
  std::string differences(const SavedWeights &here) const;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_SAVEDWEIGHTS_H
