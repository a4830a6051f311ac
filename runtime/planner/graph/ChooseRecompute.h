//===- ChooseRecompute.h - What is computed again, to save memory -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computing again costs time, and what it frees lets a stage run ahead: which is
// better differs from stage to stage (the first ones hold the most micro-batches)
// and from micro-batch to micro-batch (attention of long samples costs the most
// to compute again for each byte that it frees). DynaPipe (EuroSys'24, section 7)
// tries the three modes for a whole mini-batch; here each stage has a mode for
// each micro-batch.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CHOOSERECOMPUTE_H
#define DYNA_RUNTIME_PLANNER_CHOOSERECOMPUTE_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/order/schedules/PipelineProblem.h"
#include "runtime/planner/request/PlanChoice.h"

#include <array>
#include <vector>

namespace dyna {

/// Modes by stage and micro-batch of a replica.
using StageModes = std::vector<std::vector<plan::Recompute>>;

/// What stages take with all micro-batches in each mode, for `plan::Recompute`
/// as index. All have the same numbers of stages and micro-batches, and the
/// limits of the first count.
using ModeProblems = std::array<PipelineProblem, 3>;

/// What they take with these modes.
PipelineProblem mixModes(const ModeProblems &problems, const StageModes &modes);

/// Modes of a short makespan. From each of the three that are the same
/// everywhere and fit, stages change, one by one, the mode of the micro-batches
/// that free the most bytes for a second (or take the fewest bytes for one that
/// is saved): of all, half, a quarter ... of them, or else of a single one, as long
/// as the makespan falls. Fails (ResourceExhausted) where nothing fits.
/// Deterministic. Each makespan is O(stages * micro-batches); a search looks at
/// half a million items. How near it comes to the best is in docs/planner.md.
///
/// With a `start`, such as what was found for other limits, only from there, if it
/// fits; else as without one.
struct ChosenModes {
  StageModes modes;
  double makespan = 0;
};
StatusOr<ChosenModes> searchModes(const ModeProblems &problems,
                                  Schedule schedule,
                                  const StageModes &start = {});

/// Fills in `choice.microBatchRecompute` for these micro-batches of a replica,
/// whose ranks have `choice.dynamicLimits` less `beside`; the makespan. What is
/// there already is where the search starts. Fails as `searchModes`.
StatusOr<double> chooseRecompute(const ExecutableGraph &graph,
                                 const CostModel &costs, const plan::Plan &plan,
                                 int replica,
                                 const std::vector<int> &microBatches,
                                 const std::vector<int64_t> &beside,
                                 PlanChoice &choice);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CHOOSERECOMPUTE_H
