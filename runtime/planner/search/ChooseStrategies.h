//===- ChooseStrategies.h - Chooses strategies by lengths -------*- C++ -*-===//
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

#include "runtime/planner/search/ChosenStrategies.h"

#include <string>
#include <vector>

namespace dyna {

/// Holds the sizes that tensor degrees must divide. A size of 0 is not known, and counts
/// as divided.
struct DividedSizes {
  int64_t heads = 0, kvHeads = 0, feedForward = 0;
};

/// Returns true if a tensor degree divides them. Heads of keys are repeated if there are
/// more ranks than heads.
bool divides(int64_t tp, const DividedSizes &sizes);

/// Strategies with names and all searched tensor degrees (`isSearched`) that divide
/// the ranks and the sizes, as text; empty: there is none but 1.
std::string degreesToSearch(int64_t ranks, const DividedSizes &sizes);

/// Returns the searched degrees that divide the ranks, but not the sizes.
std::vector<int64_t> degreesThatDoNotDivide(int64_t ranks,
                                            const DividedSizes &sizes);

/// Strategies are sought for no more ranks than this.
constexpr int64_t mostSearchedRanks = 4096;

/// Returns the number of ranks to search for: `asked`, or all devices if it is
/// 0. Fails, with the numbers, if the number is unknown or larger than the
/// number of devices. Fails, too, if it is larger than a node and does not fill
/// whole nodes. `flag` names the search, for people.
StatusOr<int> ranksToSearch(const Cluster &cluster, int64_t asked,
                            const char *flag = "--strategies search");

/// Estimates every strategy of the given number of ranks alone, for samples of
/// these lengths. Fails where no strategy has room for its parameters.
StatusOr<std::vector<AloneEstimate>>
estimateSingles(const CostModel &costs, const StrategySpace &space,
                std::vector<int64_t> lengths);

/// Chooses strategies for samples of these lengths, at least one, in steps of
/// `space.tokensPerStep` tokens on average. The model of `costs` must outlive
/// the answer. Fails if no strategy of this many ranks holds the longest
/// sample.
///
/// The result fits a run with the same memory, transit buffers of its switches
/// included. Their plans are made. If they do not fit, the search continues
/// with that much less memory for steps of several strategies. Estimates leave
/// out how uneven micro-batches are. So the result is planned and simulated on
/// drawn steps, beside the best single strategies and its own strategies, each
/// alone. If one of these is faster, it wins.
StatusOr<ChosenStrategies> chooseStrategies(const CostModel &costs,
                                            const StrategySpace &space,
                                            std::vector<int64_t> lengths);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CHOOSESTRATEGIES_H
