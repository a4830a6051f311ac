//===- ChooseRecompute.h - Chooses modes of recomputation -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Recomputation costs time, and the memory that it frees lets a stage run
// ahead. The better choice differs from stage to stage, since the first stages
// hold the most micro-batches. It also differs between micro-batches: attention
// of long samples costs the most time per freed byte. DynaPipe (EuroSys'24,
// section 7) tries the three modes for a whole mini-batch. Here each stage has
// a mode for each micro-batch.
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

/// Problems of the stages with all micro-batches in one mode, with
/// `plan::Recompute` as index. All have the same numbers of stages and
/// micro-batches, and the limits of the first count.
using ModeProblems = std::array<PipelineProblem, 3>;

/// Returns the problem of the stages with these modes.
PipelineProblem mixModes(const ModeProblems &problems, const StageModes &modes);

/// Searches modes with a short makespan. It starts from each uniform mode that
/// fits. Stages then change the modes of micro-batches, one stage at a time.
/// Micro-batches that free the most bytes per second come first, or those that
/// take the fewest bytes per saved second. A change has all, half, a quarter
/// ... of them, or a single one, as long as the makespan falls.
///
/// With a `start`, such as modes found for other limits, the search starts only
/// from there, if it fits.
///
/// Fails (ResourceExhausted) if nothing fits. Deterministic. Each makespan is
/// O(stages * micro-batches); a search simulates half a million items.
/// docs/planner.md has the distance from the optimum.
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
