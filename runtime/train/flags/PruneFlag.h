//===- PruneFlag.h - Parses the value of --prune ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
//   --prune "final=0.9,from=3000,until=7000,every=1000"
//
// The words of a schedule (runtime/elastic/prune/PruningSchedule.h), and these:
//
//   params=*.mlp.*+*.attn.*   prunes these matrices (PrunedParameters.h);
//   scope=layer               compares weights within a layer; default: global;
//   criterion=magnitude       keeps the largest weights;
//   structure=element         prunes single weights.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_PRUNEFLAG_H
#define DYNA_RUNTIME_TRAIN_PRUNEFLAG_H

#include "runtime/elastic/prune/PruningSchedule.h"

#include <string>

namespace dyna {

struct PruneFlag {
  PruningSchedule schedule;
  std::string parameters; ///< patterns; empty: the default
  bool isPerLayer = false;
};

/// Parses the value of --prune. Error messages name the flag.
StatusOr<PruneFlag> parsePruneFlag(const std::string &text);

/// Weights that a run has pruned so far.
struct PrunedSoFar {
  double sparsity = 0; ///< target of the schedule; 0: nothing was pruned
  int64_t weights = 0, survivors = 0;
};

/// Fails if events of `now` lie in the past, if sparsity would fall, or if other
/// parameters were pruned. The saved run has done `steps` steps under `saved`. Both are
/// values of --prune; an empty one means none.
Status checkResumedPruning(const std::string &saved, const std::string &now,
                           int64_t steps, const PrunedSoFar &pruned);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_PRUNEFLAG_H
