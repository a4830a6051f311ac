//===- Pruning.h - Prunes weights between two steps -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ranks agree on the largest weights (runtime/elastic/prune/SelectSurvivors.h). Each of
// them then writes the masks of the rows that it updates. Masters, moments and copies of
// the others become zero there. From then on the gradient of a pruned weight is zero
// before its norm is taken, so that the weight stays zero.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_STEP_PRUNING_H
#define DYNA_RUNTIME_EXECUTOR_STEP_PRUNING_H

#include <cstdint>
#include <string>

namespace dyna {

/// An order to prune the parameters with masks. All ranks get the same one.
struct PruneOrder {
  int64_t step = 0;        ///< weights are pruned before it, from 0
  double sparsity = 0;     ///< share of zero weights to reach
  bool isPerLayer = false; ///< the share of each layer; else of the whole model
};

struct PruneResult {
  int64_t weights = 0;   ///< of the parameters that are pruned
  int64_t survivors = 0; ///< number of weights that stay
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
