//===- SimulateChoice.h - Simulates what a search found ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Steps that are drawn from the lengths are planned and simulated under what a
// search found, and under single strategies (SearchSingles.h). Both sides have the
// same choices of recomputation and micro-batches, so that their ratio is the gain of
// several strategies.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SIMULATECHOICE_H
#define DYNA_RUNTIME_PLANNER_SIMULATECHOICE_H

#include "runtime/planner/search/ChosenStrategies.h"
#include "runtime/planner/search/SizedSteps.h"

#include <memory>

namespace dyna {

/// Sizes what was found as a run with the memory of a device and these flags does.
/// Recomputation that `request` says stands instead of the modes of strategies.
StatusOr<std::unique_ptr<SizedSteps>> sizeSet(const CostModel &costs,
                                              const StrategySpace &space,
                                              const ChosenStrategies &chosen,
                                              PlanRequest request);

/// Simulates drawn steps. `set` is what was found, sized with the flags of the space,
/// or null for a single strategy. Fails if planning fails for other reasons than a
/// lack of memory.
StatusOr<ChosenStrategies::Played>
simulateChoice(const CostModel &costs, const StrategySpace &space,
               const ChosenStrategies &chosen, const SizedSteps *set,
               std::vector<int64_t> lengths);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SIMULATECHOICE_H
