//===- AssignStrategies.h - Which samples of a step have which -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A sample has the strategy of its length's range (LengthRanges.h), unless that
// range has too few samples in this step to be worth a switch: then all of them
// merge upwards, to the next longer range that is kept, whose strategy can hold
// them. A range without samples is no phase, and costs nothing.
//
//     lengths   30 5 700 8 12     s: 0-16; m: 17-512; l: 513-
//     by range  s: 5 8 12   m: 30   l: 700
//     m is not worth it:    s: 5 8 12   l: 30 700
//
// Which ranges are kept is what makes the step shortest, by the estimates: of k
// ranges all 2^(k-1) ways are compared. Samples may merge into a range that has none
// itself, where that saves a switch.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_ASSIGNSTRATEGIES_H
#define DYNA_RUNTIME_PLANNER_ASSIGNSTRATEGIES_H

#include "runtime/planner/estimate/PhaseEstimate.h"
#include "runtime/planner/request/LengthRanges.h"

#include <vector>

namespace dyna {

/// What a step of several graphs takes, which are those of the ranges, in their
/// order. Asked with the same numbers, it answers the same.
class StepEstimates {
public:
  virtual ~StepEstimates() = default;
  /// Of the phase of a graph, which has samples.
  virtual double phaseSeconds(int graph, const PhaseLoad &load) const = 0;
  /// Of all switches of a step with phases of these graphs, ascending and at least
  /// one.
  virtual double switchSeconds(const std::vector<int> &graphs) const = 0;
};

struct Assignment {
  /// Of each graph the indices of its samples, ascending; none: no phase.
  std::vector<std::vector<int>> samples;
  double phaseSeconds = 0, switchSeconds = 0; ///< by the estimates
  double seconds() const { return phaseSeconds + switchSeconds; }
  /// Ranges with samples whose graph has none of them.
  int merged = 0;
};

/// More than anybody has strategies, and few enough to try all ways.
constexpr int maxMergedRanges = 16;

/// Deterministic: of equal times the one with fewer phases, then with the longer
/// ranges. Fails where a sample is longer than all ranges, naming it, and beyond
/// `maxMergedRanges`. O(samples + 2^ranges ranges) and O(ranges^2) estimates of
/// phases.
StatusOr<Assignment> assignSamples(const std::vector<int64_t> &lengths,
                                   const LengthRanges &ranges,
                                   const StepEstimates &estimates);

/// By their ranges alone, as evaluations are: nothing is merged. Fails as that does.
StatusOr<Assignment> assignByRange(const std::vector<int64_t> &lengths,
                                   const LengthRanges &ranges);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_ASSIGNSTRATEGIES_H
