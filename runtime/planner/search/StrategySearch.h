//===- StrategySearch.h - Searches strategies and ranges --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// HotSPa leaves four choices to its user. They are the strategies that a step
// switches between, the lengths of each, their order, and home (the one that is
// updated). The expected step is minimised over all of them at once. One
// strategy for all lengths is one of the answers.
//
//     expected step = sum over ranges r of  P(r has samples) seconds(r's phase)
//                   + sum over sets S of ranges  P(these have samples) cycle(S)
//                   + update of home
//
// Strategies are numbers here, and `StepCosts` has their costs. The search
// visits homes, and then ranges and their strategies from the shortest lengths
// on. It leaves a branch whose time cannot fall below the best one. The rest of
// a branch takes at least the best ranges without any switches. It also enters
// and leaves each strategy but home at the lowest cost. The result is the
// optimum among the given candidates and ends of ranges (`StrategySearchTest`
// compares it with all answers).
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_STRATEGYSEARCH_H
#define DYNA_RUNTIME_PLANNER_STRATEGYSEARCH_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/estimate/PhaseEstimate.h"
#include "runtime/planner/estimate/SwitchEstimate.h"

#include <cstdint>
#include <vector>

namespace dyna {

/// Lengths as a step draws them, independently.
class LengthDistribution {
public:
  /// `samplesPerStep` is a mean; at least one length.
  LengthDistribution(std::vector<int64_t> lengths, double samplesPerStep);

  /// Samples of lengths first to last, of one step.
  struct Part {
    double probability = 0; ///< of at least one sample
    PhaseLengths lengths;   ///< expected values, if there are samples
    int64_t longest = 0;    ///< largest possible length in a step, in tokens
  };
  /// Returns the samples with lengths from `first` to `last`. O(log lengths).
  Part between(int64_t first, int64_t last) const;
  int64_t longest() const { return lengths_.back(); }
  double samplesPerStep() const { return samplesPerStep_; }

private:
  std::vector<int64_t> lengths_;         ///< ascending
  std::vector<double> tokens_, squares_; ///< of all before
  double samplesPerStep_;
};

/// Costs of the candidates. Seconds may be infinite, if memory does not
/// suffice.
class StepCosts {
public:
  virtual ~StepCosts() = default;
  virtual int candidates() const = 0;
  /// Returns the seconds of existing samples, none longer than `longest`, under
  /// `candidate`. It is one of `graphs`, all graphs of a run, home first. More
  /// graphs are never faster.
  virtual double phaseSeconds(int candidate, const std::vector<int> &graphs,
                              const PhaseLengths &lengths,
                              int64_t longest) const = 0;
  virtual double updateSeconds(int home) const = 0;
  /// Returns the seconds of a switch between two different candidates. With
  /// First both may be home: the switch then brings other ranks' rows (ZeRO).
  virtual double switchSeconds(SwitchKind kind, int from, int to) const = 0;
  /// Returns the family of a candidate. Candidates of one family are one
  /// strategy with different numberings of ranks, and at most one of them is
  /// used.
  virtual int family(int candidate) const { return candidate; }
};

struct FoundRange {
  int candidate = 0;
  int64_t first = 0, last = 0; ///< tokens; the last one has no end
};

struct FoundStep {
  /// Ranges in the order of the step.
  std::vector<FoundRange> ranges;
  int home = -1; ///< a candidate
  double phases = 0, switches = 0, update = 0;
  double seconds() const { return phases + switches + update; }
};

struct StrategySearch {
  /// The longest length of each range that may be, ascending, without that of all.
  std::vector<int64_t> ends;
  int mostRanges = 4;
  /// Looked at, all in all: what was found until then is the answer. Some seconds.
  int64_t mostBranches = 50'000'000;
};

struct FoundStrategies {
  FoundStep best, bestSingle;
  /// Single strategies by candidate; infinite where one does not hold the longest.
  std::vector<double> singles;
  int64_t branches = 0, complete = 0; ///< numbers of visited ones
  bool isCut = false; ///< there were more branches than may be looked at
};

/// Fails with ResourceExhausted where no strategy holds all lengths; there may be
/// no single one: `bestSingle` has no ranges then. Deterministic.
StatusOr<FoundStrategies> searchStrategies(const StepCosts &costs,
                                           const LengthDistribution &lengths,
                                           const StrategySearch &search);

/// Returns the seconds of the switches for the best order of ranges, with
/// home's at the end: `sum over S` above. Each entry of `probabilities` is that
/// of the candidate at its index. O(guests! 2^guests guests).
double bestOrder(const StepCosts &costs, int home,
                 const std::vector<int> &candidates,
                 const std::vector<double> &probabilities,
                 std::vector<int> &order);

/// Ends from 64 tokens, in steps of half a power of two, below the longest.
std::vector<int64_t> usualEnds(int64_t longest);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_STRATEGYSEARCH_H
