//===- SearchSingles.h - Searches the best single strategy ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Searches one strategy for samples of all lengths, and how a run makes its plans:
//
//     degrees, ZeRO, sp, order of ranks      StrategyCandidates.h
//     recomputation                          none, selective, full, or auto
//     slices                                 those of the request; with `auto` each plan
//                                            cuts its own
//     micro-batches                          kind, and largest number of tokens
//     layers of stages                       cut by cost, of the usual lengths or of the
//                                            given ones, or one layer moved
//
// Estimates sort the strategies, and simulated steps decide. There are two estimates.
// That of a strategy knows the distribution of lengths alone, and is cheap. That of a
// step cuts a real mini-batch and chooses its modes, and is much closer. Steps are
// planned as a run plans them, so the caller estimates and simulates (`SingleRuns`).
// The search has four parts:
//
//     1. The step estimate of every strategy whose own estimate is not far above the
//        best step estimate.
//     2. Simulated steps of every strategy whose step estimate is not far above the
//        best simulated time. A strategy that is the best of its degrees goes on.
//     3. Other micro-batches, orders and cuts of the best few, until none is faster.
//     4. All steps of the best ones, if these are close to each other.
//
// Exhaustive: parts 1 and 2 have no limit by estimates, or a wide one if the caller gives
// it. Part 3 starts from more strategies. A test compares the answers of both.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SEARCHSINGLES_H
#define DYNA_RUNTIME_PLANNER_SEARCHSINGLES_H

#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/search/StrategyCandidates.h"

#include <functional>
#include <limits>
#include <string>
#include <vector>

namespace dyna {

/// A strategy with what else a run is asked for.
struct SingleStrategy {
  PlanRequest request;
  double expected = 0; ///< estimated seconds of a step; infinite without room
  double beside = 0;   ///< part of `expected` outside of the pipeline
  /// Simulated seconds of a step; infinite if none was, or if it does not fit.
  double seconds = 0;
  int64_t steps = 0;       ///< number of simulated steps
  std::string reason;      ///< why it does not fit, for people; else empty
  std::vector<int> layers; ///< layers of each stage, as estimates cut them
  std::vector<int> layersForLengths; ///< the same, cut for the given lengths

  bool fits() const { return reason.empty(); }
  /// Returns a name for people: the strategy, and each choice that is not the
  /// default.
  std::string name() const;
  /// Returns the choice as flags of a run.
  std::string flags() const;
};

struct SingleSpace {
  /// Requests to combine with every strategy, without strategies. Their words for
  /// recomputation and micro-batches are fixed where the search leaves them.
  std::vector<PlanRequest> requests = {PlanRequest()};
  bool searchesRecompute = true;   ///< requests leave recomputation open
  bool searchesChosenModes = true; ///< recomputation may be `auto`
  bool searchesKinds = true; ///< requests leave kinds of micro-batches open
  bool searchesSizes = true; ///< requests leave sizes of micro-batches open
  int64_t steps = 1;         ///< number of steps to simulate
  int64_t screenedSteps = 1; ///< steps that parts 1 to 3 simulate
  /// Degrees that are simulated in any case.
  size_t mostShown = 10;
  size_t mostRefined =
      5; ///< strategies of different degrees that part 3 changes
  size_t mostFinal = 10; ///< strategies of part 4
  bool isExhaustive = false;
  /// An exhaustive search leaves out what an estimate puts above so many times the best.
  /// Estimates of strategies count after the first step of their degrees and modes.
  double exhaustiveLimit = std::numeric_limits<double>::infinity();
};

/// Holds what the caller does with requests. Both functions fail with ResourceExhausted, with the reason,
/// if the request does not fit.
struct SingleRuns {
  /// Simulates the first `steps` steps and returns the mean seconds of one.
  std::function<StatusOr<double>(const PlanRequest &request, int64_t steps)>
      simulate;
  /// Estimates the mean seconds of the pipelines of the first `steps` steps; infinite if
  /// no order fits.
  std::function<StatusOr<double>(const PlanRequest &request, int64_t steps)>
      estimate;
};

struct FoundSingles {
  /// Simulated strategies that fit. The best ones are first, by all of their steps,
  /// the others by their screened steps.
  std::vector<SingleStrategy> fitting;
  /// Strategies that do not fit, with the reasons.
  std::vector<SingleStrategy> lacking;
  int64_t skipped =
      0; ///< strategies that were not simulated because of estimates
};

/// The steps of strategies whose estimate is above this multiple of the best
/// step estimate are not estimated: estimates are rarely that far above
/// (docs/planner.md). The estimate of chosen modes is their bound, so that less
/// is enough.
constexpr double mostAboveBest = 1.2, mostAboveBestChosen = 1.05;
/// The limit is lower if the estimate was corrected by a step of the same degrees and
/// modes.
constexpr double mostAboveCorrected = 1.05;
/// Steps whose estimate is above this multiple of the best simulated time are
/// not simulated.
constexpr double mostAboveSimulated = 1.08;
/// Another choice for one strategy is simulated if its estimate is not above
/// this multiple of the estimate of the fastest choice.
constexpr double mostAbovePredicted = 1.01;
/// All steps are simulated for strategies whose screened time is not above this
/// multiple of the shortest.
constexpr double mostAboveFinal = 1.05;
/// Other choices are searched for strategies within this multiple of the best.
constexpr double mostAboveRefined = 1.08;

/// The word of `--slices` for whole samples.
constexpr const char *noSlices = "none";

/// Returns the word of `--slices` that a search has: whole samples, unless one is given.
/// Each plan with slices takes far longer to find, so a search has them if asked.
std::string slicesOfSearch(const std::string &given);

/// Returns how many of the steps are screened: half a million tokens, and at least one
/// step. One step alone has few long samples, and may favour other degrees. With slices,
/// whose plans take long, it is a quarter of that.
int64_t screenedSteps(int64_t steps, int64_t tokensPerStep,
                      bool slices = false);

/// Searches the fastest single strategies. `tell` reports progress. An estimate
/// is for the requests with its slices. Deterministic. Fails as `runs` does,
/// except for strategies that do not fit.
StatusOr<FoundSingles>
searchSingles(const std::vector<AloneEstimate> &estimates,
              const SingleSpace &space, const SingleRuns &runs,
              const std::function<void(const std::string &)> &tell);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SEARCHSINGLES_H
