//===- FindSlices.h - Finds slices of cut mini-batches ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_FINDSLICES_H
#define DYNA_RUNTIME_PLANNER_FINDSLICES_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

/// Cuts micro-batches of whole samples into slices, as `options.slices` says. With `auto`
/// they stay whole unless slices are faster by the clock of the schedule. Costs as one
/// share of `cutMiniBatch`.
StatusOr<std::vector<plan::MicroBatch>>
sliceCut(const ExecutableGraph &graph, const CostModel &costs,
         std::vector<plan::MicroBatch> whole, const PlanOptions &options,
         bool trains);

/// Micro-batches with slices. If modes were chosen together with the cut, there is one
/// for each.
struct SlicedCut {
  std::vector<plan::MicroBatch> microBatches;
  std::vector<plan::Recompute> modes;
  bool isFaster = true; ///< by the clock
};

/// Returns at most `most` cuts into slices that are faster than the whole micro-batches
/// by the clock of the schedule, with messages; the fastest first. The simulator may find
/// otherwise. If whole micro-batches fit no order of the schedule, cuts that are not faster
/// are returned too. Returns nothing if there is one stage, or nothing can be sliced.
///
/// If the planner chooses recomputation within limits, one more cut is the last. It has
/// a mode for each slice, chosen together with the cut. Its bytes fit under 1F1B, or
/// under the schedule if that does not go by memory. Times do not look at memory then.
StatusOr<std::vector<SlicedCut>>
fasterSlices(const ExecutableGraph &graph, const CostModel &costs,
             const std::vector<plan::MicroBatch> &whole,
             const PlanOptions &options, bool trains, size_t most);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_FINDSLICES_H
