//===- PlanChoice.h - Holds options chosen by the planner -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANCHOICE_H
#define DYNA_RUNTIME_PLANNER_PLANCHOICE_H

#include "runtime/planner/request/PlanOptions.h"

#include <utility>
#include <vector>

namespace dyna {

/// Choices for the plan of a step: options, of which the planner may replace
/// some, and its choices within them.
struct PlanChoice : PlanOptions {
  PlanChoice() = default;
  PlanChoice(PlanOptions options) : PlanOptions(std::move(options)) {}

  /// Recomputation modes by micro-batch; empty: `recompute` holds for all. An entry
  /// replaces `recompute`.
  std::vector<RecomputeModes> microBatchRecompute;
  /// Limit of micro-batches that each stage holds under a schedule that adapts to
  /// memory; empty: as many as fit.
  std::vector<int> mostKept;

  plan::Recompute modeOf(int layer, int microBatch) const {
    return dyna::modeOf(microBatchRecompute.empty()
                            ? recompute
                            : microBatchRecompute[microBatch],
                        layer);
  }
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANCHOICE_H
