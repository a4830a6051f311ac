//===- FreezeList.h - Layers that a run freezes and thaws -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The value of --freeze: before which steps a run freezes layers, and thaws them.
//
//     embed+h.0-h.5@2000; auto=0.2@4000; thaw=h.4-h.5@6000
//
// Behind @ stands how many steps are done before. Layers have the names of the
// model, with '+' between them, and ranges. `auto` freezes from the first layer on, at most
// that share of the layers that are left (FreezeRule.h).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_FREEZELIST_H
#define DYNA_RUNTIME_TRAIN_FREEZELIST_H

#include "runtime/base/text/Json.h"
#include "runtime/base/text/JsonWriter.h"
#include "runtime/plan/model/FreezeLayers.h"

#include <cstdint>
#include <string>
#include <vector>

namespace dyna {

struct FreezeEvent {
  int64_t step = 0; ///< steps that are done before
  bool thaws = false;
  double share = 0;   ///< of `auto`; 0: `layers` are named
  std::string layers; ///< as parseLayers reads them; of `auto` the share

  bool isAuto() const { return share > 0; }
};

/// State of a run that freezes layers, in its checkpoints.
struct FrozenSoFar {
  std::string layers; ///< as parseLayers reads them; empty: none is frozen
  /// Norms of the last gradients by layer, if an event before the next step needs them.
  std::vector<double> norms;

  /// Adds "frozen" and "layer_norms" to state.json, if they are not empty.
  void addTo(JsonObject &state) const;
  /// Reads what `addTo` has written. Returns false if it is not valid.
  bool readFrom(const JsonValue &state);
};

/// Parses the list. Steps rise. An empty text has no events.
StatusOr<std::vector<FreezeEvent>> parseFreezes(const std::string &text);

/// Returns an event, or a list, as text that parses to the same again.
std::string describeFreeze(const FreezeEvent &event);
std::string describeFreezes(const std::vector<FreezeEvent> &events);

/// Returns the layers that are frozen behind an event, of a run in which `now` are. Fails if
/// the event names no layer, thaws a layer that is not frozen, or leaves nothing to train.
/// `compiled` is the model without frozen layers. For `auto`, `norms` are the norms of the
/// gradients of layers in the step before. Layers that share parameters with others stay as
/// they are, and so do all if one has no norm.
StatusOr<FrozenLayers> frozenBehind(const Model &compiled,
                                    const FreezeEvent &event,
                                    const FrozenLayers &now,
                                    const std::vector<double> &norms = {});

/// Fails if an event is in the past, or cannot be done when its turn comes. The run has done
/// so many steps, and `now` are frozen. Behind an event of `auto` it is not known
/// what is frozen, so that later events are checked for their names alone.
Status checkFreezes(const Model &compiled,
                    const std::vector<FreezeEvent> &events,
                    const FrozenLayers &now, int64_t done);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_FREEZELIST_H
