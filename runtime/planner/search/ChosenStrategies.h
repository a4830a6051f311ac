//===- ChosenStrategies.h - Describes found strategies ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CHOSENSTRATEGIES_H
#define DYNA_RUNTIME_PLANNER_CHOSENSTRATEGIES_H

#include "runtime/planner/search/SearchSingles.h"
#include "runtime/planner/search/StrategyCandidates.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// Strategies have names, from the shortest lengths on: a, b, c.
class ChosenStrategies {
public:
  ChosenStrategies(StrategyCandidates candidates, FoundStrategies found,
                   LengthDistribution lengths);

  const StrategyCandidates &candidates() const { return candidates_; }
  const FoundStrategies &found() const { return found_; }
  /// Tokens of the longest sample, as it counted.
  int64_t longest() const { return lengths_.longest(); }

  /// Drawn steps as they were planned and simulated: what was found, and the fastest
  /// single strategy, both with the same choices of recomputation and micro-batches.
  struct Played {
    int64_t steps = 0;
    /// Seconds of what was found; infinite if no order of a step fits.
    double found = 0;
    PlanRequest request;                 ///< the fastest flags that were found
    std::optional<SingleStrategy> alone; ///< the fastest that fits
  };
  /// Takes the single strategy for what was found, if it is faster or several are not
  /// worth their switches.
  void take(const Played &played);

  /// Returns what was found, in the order of the step.
  std::vector<Strategy> chosen() const;
  /// Returns true if a step has several strategies.
  bool isSet() const { return found_.best.ranges.size() > 1; }
  /// Flags of a run beside strategies and ranges, each with a space before it.
  std::string moreFlags() const;
  /// Return the values for --strategies and --ranges.
  std::string strategies() const;
  std::string ranges() const;
  /// Returns a table for people, of several lines. It has what was considered,
  /// the step, and each strategy of the search alone. It also shows how to ask
  /// for the result; `withFlags`: with further flags of a run.
  std::string table(bool withFlags = true) const;
  /// Returns one line about the simulated steps; empty if none was simulated.
  std::string playedText() const;
  /// Returns one JSON object on one line.
  std::string json() const;

private:
  std::vector<int> homeFirst() const;
  std::string nameOf(int candidate) const;
  void nameRanges();
  bool isAlone(const Played &played) const;
  static Strategy withMode(const SingleStrategy &single);
  std::string rangesTable() const;
  std::string singlesTable() const;

  StrategyCandidates candidates_;
  FoundStrategies found_;
  LengthDistribution lengths_;
  std::vector<std::pair<int, std::string>> names_;
  std::optional<Played> played_;
  std::optional<SingleStrategy>
      single_; ///< found instead of what estimates favour
  PlanRequest request_;
  bool isOther_ = false; ///< than estimates favour
  // The result of the search by estimates.
  double expected_ = 0;
  size_t expectedRanges_ = 0;
  std::string expectedText_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CHOSENSTRATEGIES_H
