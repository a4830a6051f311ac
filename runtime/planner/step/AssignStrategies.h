//===- AssignStrategies.h - Assigns the samples of a step -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A sample goes to the strategy of its length's range (LengthRanges.h). If a range
// has too few samples in a step to be worth a switch, all of them merge upwards.
// They go to the next longer range that is kept, whose strategy can hold them. A
// range without samples is no phase, and costs nothing.
//
//     lengths   30 5 700 8 12     s: 0-16; m: 17-512; l: 513-
//     by range  s: 5 8 12   m: 30   l: 700
//     m is not worth it:    s: 5 8 12   l: 30 700
//
// The ranges are kept that make the estimated step shortest. With k ranges, all
// 2^(k-1) ways are compared. Samples may merge into a range that has none itself, if
// that saves a switch.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_ASSIGNSTRATEGIES_H
#define DYNA_RUNTIME_PLANNER_ASSIGNSTRATEGIES_H

#include "runtime/planner/estimate/PhaseEstimate.h"
#include "runtime/planner/request/LengthRanges.h"

#include <vector>

namespace dyna {

/// Estimates the duration of steps of several graphs, one for each range and in their
/// order. Equal questions get equal answers.
class StepEstimates {
public:
  virtual ~StepEstimates() = default;
  /// Returns the seconds of a graph's phase, which has samples.
  virtual double phaseSeconds(int graph, const PhaseLengths &lengths) const = 0;
  /// Returns the seconds of all switches of a step with phases of these graphs. The
  /// list is ascending and not empty.
  virtual double switchSeconds(const std::vector<int> &graphs) const = 0;
};

struct Assignment {
  /// Indices of the samples of each graph, ascending; empty: no phase.
  std::vector<std::vector<int>> samples;
  double phaseSeconds = 0, switchSeconds = 0; ///< by the estimates
  double seconds() const { return phaseSeconds + switchSeconds; }
  /// Ranges with samples whose graph has none of them.
  int merged = 0;
};

/// Largest number of ranges for which all ways are tried.
constexpr int maxMergedRanges = 16;

/// Assigns samples so that the estimated step is shortest. Of equal times, the one
/// with fewer phases wins, then the one with longer ranges. Fails if a sample is
/// longer than all ranges, and names it. Fails if there are more than
/// `maxMergedRanges` ranges. O(samples + 2^ranges ranges), and O(ranges^2) estimates
/// of phases.
StatusOr<Assignment> assignSamples(const std::vector<int64_t> &lengths,
                                   const LengthRanges &ranges,
                                   const StepEstimates &estimates);

/// Assigns samples by their ranges alone, without merging. Evaluations use it. Fails if
/// a sample is longer than all ranges.
StatusOr<Assignment> assignByRange(const std::vector<int64_t> &lengths,
                                   const LengthRanges &ranges);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ASSIGNSTRATEGIES_H
