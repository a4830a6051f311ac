//===- StepRegions.h - Sizes the region of each rank ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STEPREGIONS_H
#define DYNA_RUNTIME_PLANNER_STEPREGIONS_H

#include "runtime/planner/step/StepGraphs.h"

#include <vector>

namespace dyna {

/// Bytes that each rank has beside home's parameters.
struct StepRegions {
  std::vector<int64_t> bytes;
  std::vector<int64_t> most; ///< most that steps use without taking turns
  /// Limits for the micro-batches of each graph, in the order of ranges, by rank.
  std::vector<std::vector<int64_t>> limits;
  bool isLimited = false; ///< some graph has less than its plans can use

  /// Sets the limits in the options of the graphs.
  void apply(StepGraphs &graphs) const;
};

/// Sizes regions for arenas of at most `rankBytes` (-1: no limit). An arena holds home's
/// parameters and, in turn, the memory of each phase (PlacePhases.h). If memory is
/// short, phases take turns. The micro-batches of a graph then have what its own
/// parameters leave, for any neighbouring phases.
///
/// Returns ResourceExhausted, with the numbers, if one phase does not fit by itself or
/// two layouts do not fit side by side. With `atLeast` such a rank gets what it needs.
/// `tokensPerStep` is the approximate number of tokens in a mini-batch.
StatusOr<StepRegions> sizeStepRegions(const StepGraphs &graphs,
                                      int64_t tokensPerStep, bool training,
                                      int64_t rankBytes, bool atLeast);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPREGIONS_H
