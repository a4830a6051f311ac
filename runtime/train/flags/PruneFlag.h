//===- PruneFlag.h - Parses the value of --prune ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   --prune "final=0.9,from=3000,until=7000,every=1000"
//
// The words of a schedule (runtime/elastic/prune/PruningSchedule.h), and these:
//
//   params=*.mlp.*+*.attn.*   prunes these matrices (PrunedParameters.h).
//   scope=layer               compares weights within a layer. The default is global.
//   criterion=magnitude       keeps the largest weights.
//   criterion=gradient        keeps those with the largest |weight * gradient|, added up
//                             since the last event.
//   regrow=0.3                drops this share of the survivors in each event. As many
//                             pruned weights with the largest gradients grow again.
//   structure=element         prunes single weights. There are also head and channel, which
//                             prune attention heads and feed-forward channels.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PRUNEFLAG_H
#define DYNA_RUNTIME_TRAIN_PRUNEFLAG_H

#include "runtime/elastic/prune/PrunedUnits.h"
#include "runtime/elastic/prune/PruningSchedule.h"

#include <string>

namespace dyna {

class JsonObject;
struct JsonValue;

struct PruneFlag {
  PruningSchedule schedule;
  std::string parameters; ///< patterns; empty: the default
  bool isPerLayer = false;
  bool isByGradient = false;
  PrunedStructure structure = PrunedStructure::Element;
  double regrow = 0; ///< share of the survivors; 0: nothing grows again

  /// Returns true if ranks keep a score of each weight.
  bool hasScores() const { return isByGradient || regrow > 0; }
};

/// Parses the value of --prune. Error messages name the flag.
StatusOr<PruneFlag> parsePruneFlag(const std::string &text);

/// Weights that a run has pruned so far.
struct PrunedSoFar {
  double sparsity = 0; ///< target of the schedule; 0: nothing was pruned
  int64_t weights = 0, survivors = 0;
  int64_t event =
      -1; ///< steps that were done before the last event; -1: none yet

  /// Adds "pruned" to state.json, if anything was pruned.
  void addTo(JsonObject &state) const;
  /// Reads what `addTo` has written. Returns false if it is not valid.
  bool readFrom(const JsonValue &state);
};

/// Fails if events of `now` lie in the past, or before the scores that they need. Fails if
/// sparsity would fall, or if other parameters were pruned. The saved run has done `steps`
/// steps under `saved`. Both are values of --prune; an empty one means none.
Status checkResumedPruning(const std::string &saved, const std::string &now,
                           int64_t steps, const PrunedSoFar &pruned);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PRUNEFLAG_H
