//===- ChooseStrategies.h - The strategies of a step, by lengths -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// From lengths and a cluster to what --strategies and --ranges take: degrees to
// compile, candidates (StrategyCandidates.h), search (StrategySearch.h), names.
// What `dynac --strategies search`, `dyna-plan --strategies search` and a run's
// `--ranges search` have in common.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CHOOSESTRATEGIES_H
#define DYNA_RUNTIME_PLANNER_CHOOSESTRATEGIES_H

#include "runtime/planner/search/StrategyCandidates.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace dyna {

/// What tensor degrees must divide; 0: not known, which divides.
struct DividedSizes {
  int64_t heads = 0, kvHeads = 0, feedForward = 0;
};

/// Whether a tensor degree divides them; with more ranks than heads of keys these are
/// repeated.
bool divides(int64_t tp, const DividedSizes &sizes);

/// Strategies with names and all searched tensor degrees (`isSearched`) that divide
/// the ranks and the sizes, as text; empty: there is none but 1.
std::string degreesToSearch(int64_t ranks, const DividedSizes &sizes);

/// The searched degrees that divide the ranks, but not the sizes.
std::vector<int64_t> degreesThatDoNotDivide(int64_t ranks,
                                            const DividedSizes &sizes);

/// Strategies are sought for no more ranks than this.
constexpr int64_t mostSearchedRanks = 4096;

/// Ranks that strategies are sought for: as many as `asked`, 0 for all devices.
/// Fails with the numbers where nobody says how many, where there are not so many
/// devices, or where they are more than a node's and not whole nodes.
/// `flag` is the search, for people.
StatusOr<int> ranksToSearch(const Cluster &cluster, int64_t asked,
                            const char *flag = "--strategies search");

/// Cuts lengths at so many positions, 0: at none; how many were cut.
int64_t cutLengths(std::vector<int64_t> &lengths, int64_t positions);

/// Strategies have names, from the shortest lengths on: a, b, c.
class ChosenStrategies {
public:
  ChosenStrategies(StrategyCandidates candidates, FoundStrategies found,
                   LengthDistribution lengths);

  const StrategyCandidates &candidates() const { return candidates_; }
  const FoundStrategies &found() const { return found_; }
  /// Tokens of the longest sample, as it counted.
  int64_t longest() const { return lengths_.longest(); }

  /// Steps that were drawn, planned and played: what was found, and the fastest
  /// single strategy. Where that is faster, or several are not worth while, it is what
  /// was found from then on.
  struct Played {
    int64_t steps = 0;
    /// Seconds; infinite where no order of a step fits.
    double found = 0, alone = 0;
    int candidate = -1; ///< that alone was fastest
  };
  void take(const Played &played);

  /// What was found, in the order of the step.
  std::vector<Strategy> chosen() const;
  /// As --strategies and --ranges take them, in that order.
  std::string strategies() const;
  std::string ranges() const;
  /// For people, several lines: what was considered, the step, each strategy of
  /// the search alone, and how to ask for what was found.
  std::string table() const;
  /// What playing said of what was found, a line; empty: nothing was played.
  std::string playedText() const;
  /// One line: an object.
  std::string json() const;

private:
  std::vector<int> homeFirst() const;
  std::string nameOf(int candidate) const;
  void nameRanges();
  bool isAlone(const Played &played) const;
  std::string rangesTable() const;
  std::string singlesTable() const;

  StrategyCandidates candidates_;
  FoundStrategies found_;
  LengthDistribution lengths_;
  std::vector<std::pair<int, std::string>> names_;
  std::optional<Played> played_;
  bool isOther_ = false; ///< than estimates favour
  // Of what was found by estimates.
  double expected_ = 0;
  size_t expectedRanges_ = 0;
  std::string expectedText_;
};

/// Estimates every strategy of so many ranks alone, for samples of such lengths.
/// Fails where no strategy has room for its parameters.
StatusOr<std::vector<AloneEstimate>>
estimateSingles(const CostModel &costs, const StrategySpace &space,
                std::vector<int64_t> lengths);

/// For samples of such lengths, of which there is one at least, in steps of
/// `space.tokensPerStep` tokens in the mean. The model of `costs` must outlive the
/// answer. Fails where no strategy of so many ranks holds the longest sample.
///
/// What is found has room in a run of as much memory, what its switches pass on
/// included: their plans are made, and where these do not fit, the search goes on
/// with so much less for steps of several strategies. Estimates leave out how uneven
/// micro-batches are, so what was found is planned and played on drawn steps beside
/// the best single strategies and its own, each alone: one that is faster wins.
StatusOr<ChosenStrategies> chooseStrategies(const CostModel &costs,
                                            const StrategySpace &space,
                                            std::vector<int64_t> lengths);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CHOOSESTRATEGIES_H
