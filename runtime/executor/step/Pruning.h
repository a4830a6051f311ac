//===- Pruning.h - Prunes weights between two steps -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks agree on the largest weights (runtime/elastic/prune/SelectSurvivors.h). Each of
// them then writes the masks of the rows that it updates. Masters, moments and copies of
// the others become zero there. From then on the gradient of a pruned weight is zero
// before its norm is taken, so that the weight stays zero.
//
// Weights are compared by magnitude, or by scores: |weight * gradient|, added up in each
// step since the last event. Scores are state of ranks, as moments are. All are 0 behind an
// event. The score of a pruned weight is used for regrowing: its |gradient| in the step
// before the event.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_PRUNING_H
#define DYNA_RUNTIME_EXECUTOR_STEP_PRUNING_H

#include "runtime/elastic/prune/PrunedUnits.h"

#include <cstdint>
#include <string>

namespace dyna {

/// An order to prune the parameters with masks. All ranks get the same one.
struct PruneOrder {
  int64_t step = 0;        ///< weights are pruned before it, from 0
  double sparsity = 0;     ///< share of zero weights to reach
  bool isPerLayer = false; ///< the share of each layer; else of the whole model
  PrunedStructure structure = PrunedStructure::Element;
  bool isByScore = false; ///< weights with the largest scores survive
  /// Share of the survivors that are dropped; as many pruned weights grow again. These
  /// have the largest scores, which are gradients.
  double regrow = 0;
};

/// Share of a layer's work that is left if heads or channels are pruned: what dense products
/// and attention without them would take.
struct FormulaShare {
  double products = 1, attention = 1;
};

struct PruneResult {
  int64_t weights = 0;   ///< of the parameters that are pruned
  int64_t survivors = 0; ///< number of weights that are not zero behind it
  int64_t regrown = 0;   ///< survivors that were pruned before
  /// Heads or channels, if these are pruned.
  int64_t units = 0, survivingUnits = 0;
  double seconds = 0;
  /// Reason why nothing was changed, equal on all ranks; empty if weights were
  /// pruned.
  std::string refusal;

  double sparsity() const {
    return weights > 0 ? 1 - static_cast<double>(survivors) /
                                 static_cast<double>(weights)
                       : 0;
  }
};

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_STEP_PRUNING_H
