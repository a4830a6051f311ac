//===- SizedSteps.h - Sizes steps of given strategies -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes what a run makes of its strategies and ranges before its first step.
// There is a graph for each, the switches between them, and sizes of
// micro-batches and regions that fit a device. Searches and reports use this to
// know what such a run would do.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SIZEDSTEPS_H
#define DYNA_RUNTIME_PLANNER_SIZEDSTEPS_H

#include "runtime/planner/step/StepPlanner.h"

#include <memory>
#include <string>
#include <vector>

namespace dyna {

class SizedSteps {
public:
  struct Asked {
    std::vector<Strategy> strategies;
    LengthRanges ranges;     ///< ranges of lengths of these strategies
    PlanRequest request;     ///< request for each graph, without strategy
    int64_t memoryBytes = 0; ///< of a device; 0: no limit
    int64_t longest = 0;     ///< tokens of the longest sample
    /// Samples that no run takes under these strategies are shortened, as a run does
    /// it (longestSampleOf).
    bool shortens = false;
    bool merges = true; ///< ranges that are not worth their switch
    /// A search compares many strategies. Regions of one strategy that slices then have
    /// all memory that parameters leave, since sizing them takes longer than all else.
    /// A run's regions are not larger, but they may be smaller.
    bool isScreening = false;

    /// Returns the request with its strategy for samples of all lengths.
    static Asked alone(PlanRequest request);
  };
  /// Sizes the steps. Plans that do not fit are made nevertheless;
  /// `lackingBytes` says by how much. `notes` are those of the strategies, by
  /// name. `costs` must outlive the answer.
  static StatusOr<std::unique_ptr<SizedSteps>>
  create(const CostModel &costs, Asked asked, std::vector<std::string> &notes);

  const StepPlanner &planner() const { return *planner_; }
  /// Returns the missing bytes of the rank that lacks most; 0: all fit.
  int64_t lackingBytes() const { return lackingBytes_; }
  /// Tokens of the longest sample that the steps may have: fewer than asked for if
  /// longer samples are shortened.
  int64_t longest() const { return longest_; }

  /// Estimates the mean seconds of the pipelines of steps under one strategy, without
  /// plans (Planner::estimateStep).
  StatusOr<double>
  estimate(const std::vector<std::vector<int64_t>> &steps) const;

  /// Returns the mean seconds of the steps, each of which is planned, verified
  /// and simulated.
  StatusOr<double> play(const std::vector<std::vector<int64_t>> &steps) const;

private:
  Status sizeForScreening(int64_t rankBytes);

  std::unique_ptr<StepGraphs> graphs_;
  std::unique_ptr<StepPlanner> planner_;
  int64_t lackingBytes_ = 0, longest_ = 0;
};

/// Truncates lengths to `positions`; 0: to none. Returns the number of
/// truncated lengths.
int64_t cutLengths(std::vector<int64_t> &lengths, int64_t positions);

/// Draws 1 to 4 mini-batches of such lengths, always the same ones. Each has
/// about `tokensPerStep` tokens, at most 2^20. Every part of the sorted lengths
/// has its share of the samples, to within one, in random order.
std::vector<std::vector<int64_t>> drawSteps(std::vector<int64_t> lengths,
                                            int64_t tokensPerStep);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SIZEDSTEPS_H
