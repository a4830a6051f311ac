//===- StepRegions.h - The regions of the ranks of steps --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STEPREGIONS_H
#define DYNA_RUNTIME_PLANNER_STEPREGIONS_H

#include "runtime/planner/step/StepGraphs.h"

#include <vector>

namespace dyna {

/// What ranks have beside home's parameters. Bytes, of each rank.
struct StepRegions {
  std::vector<int64_t> bytes;
  std::vector<int64_t> most; ///< that steps can use, without taking turns
  /// For the micro-batches of each graph, in the order of ranges.
  std::vector<std::vector<int64_t>> limits;
  bool isLimited = false; ///< some graph has less than its plans can use

  /// To the options of the graphs.
  void apply(const StepGraphs &graphs) const;
};

/// For arenas of at most `rankBytes` (-1: not limited), which have home's parameters
/// and, in turn, what the phases of a step take (PlacePhases.h). Before memory is
/// refused, phases take turns: a graph's micro-batches have what its own parameters
/// leave, whatever neighbours a step happens to have. ResourceExhausted, with the
/// numbers, where one phase does not fit by itself, or two layouts do not side by
/// side; with `atLeast` such a rank gets what it needs all the same.
/// `tokensPerStep`: of a mini-batch, about.
StatusOr<StepRegions> sizeStepRegions(const StepGraphs &graphs,
                                      int64_t tokensPerStep, bool training,
                                      int64_t rankBytes, bool atLeast);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STEPREGIONS_H
