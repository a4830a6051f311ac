//===- SearchSinglesTest.cpp - Searches with given seconds ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/SearchSingles.h"

#include <gtest/gtest.h>

#include <limits>

using namespace dyna;

namespace {

constexpr double never = std::numeric_limits<double>::infinity();

AloneEstimate estimateOf(const std::string &strategy, double seconds) {
  AloneEstimate estimate;
  estimate.strategy = *parseStrategy(strategy);
  if (!estimate.strategy.recompute)
    estimate.strategy.recompute = plan::RECOMPUTE_NONE;
  estimate.strategy.layers = {4};
  estimate.seconds = estimate.unlimitedSeconds = seconds;
  return estimate;
}

/// Searches among strategies whose steps take what `secondsOf` says of a request and the
/// number of a step; infinity: the request does not fit. Estimates of steps say
/// `estimateOf`, which is the same unless it is given.
using SecondsOf = std::function<double(const PlanRequest &, int64_t)>;
FoundSingles search(const std::vector<AloneEstimate> &estimates,
                    const SingleSpace &space, const SecondsOf &secondsOf,
                    SecondsOf estimate = nullptr) {
  auto mean = [](const SecondsOf &of, const PlanRequest &request,
                 int64_t steps) -> StatusOr<double> {
    double seconds = 0;
    for (int64_t step = 0; step < steps; ++step)
      seconds += of(request, step);
    if (seconds == never)
      return Status::resourceExhausted("no room");
    return seconds / static_cast<double>(steps);
  };
  if (!estimate)
    estimate = secondsOf;
  auto found = searchSingles(estimates, space,
                             {[&](const PlanRequest &request, int64_t steps) {
                                return mean(secondsOf, request, steps);
                              },
                              [&](const PlanRequest &request, int64_t steps) {
                                return mean(estimate, request, steps);
                              }},
                             [](const std::string &) {});
  EXPECT_TRUE(found.isOk()) << found.status().message();
  return *std::move(found);
}

SingleSpace fixedSpace() {
  SingleSpace space;
  space.searchesKinds = space.searchesSizes = false;
  return space;
}

// The first mini-batch has no long sample, and favours replicas.
TEST(SearchSinglesTest, SeveralStepsAreScreened) {
  SingleSpace space = fixedSpace();
  space.steps = 4;
  auto seconds = [](const PlanRequest &request, int64_t step) {
    return request.strategy.tp > 1 ? 1.5 : step == 0 ? 1.0 : 3.0;
  };
  const std::vector<AloneEstimate> estimates = {estimateOf("dp=4", 1.0),
                                                estimateOf("tp=4", 1.1)};
  for (int64_t screened : {1, 2, 4}) {
    space.screenedSteps = screened;
    space.mostShown = 1; // nothing is simulated but what its estimate favours
    const FoundSingles found = search(estimates, space, seconds);
    ASSERT_FALSE(found.fitting.empty());
    EXPECT_EQ(found.fitting.front().request.strategy.tp, screened == 1 ? 1 : 4);
  }
  EXPECT_EQ(screenedSteps(10, 16384), 10);
  EXPECT_EQ(screenedSteps(100, 16384), 32);
  EXPECT_EQ(screenedSteps(10, 1000000), 1);
  EXPECT_EQ(screenedSteps(0, 16384), 1);
}

// Calls of tp=4 cost so much that only large micro-batches are fast.
TEST(SearchSinglesTest, LargerMicroBatchesOfOtherDegreesAreEstimated) {
  auto seconds = [](const PlanRequest &request, int64_t) {
    const int64_t size = request.tokensPerMicroBatch;
    if (request.strategy.tp == 1)
      return 1.0;
    return size >= 65536 ? 0.8 : size >= 16384 ? 0.9 : 1.15;
  };
  SingleSpace space;
  space.mostShown = 1;
  space.mostRefined = 1;
  const std::vector<AloneEstimate> estimates = {estimateOf("dp=4", 1.0),
                                                estimateOf("tp=4", 1.15)};
  const FoundSingles found = search(estimates, space, seconds);
  EXPECT_EQ(found.fitting.front().request.strategy.tp, 4);
  EXPECT_EQ(found.fitting.front().request.tokensPerMicroBatch, 65536);
  space.searchesSizes = false; // the user has said the size
  EXPECT_EQ(
      search(estimates, space, seconds).fitting.front().request.strategy.tp, 1);
}

// The estimate of tp=4 without recomputation leaves out what makes it too large.
TEST(SearchSinglesTest, AModeThatDoesNotFitHidesNoOther) {
  auto seconds = [](const PlanRequest &request, int64_t) {
    return request.strategy.tp == 1     ? 1.0
           : request.strategy.recompute ? 3.0 // far above the best
                                        : never;
  };
  auto estimate = [&](const PlanRequest &request, int64_t step) {
    const double real = seconds(request, step);
    return real == never ? 1.05 : real;
  };
  SingleSpace space = fixedSpace();
  const FoundSingles found =
      search({estimateOf("dp=4", 1.0), estimateOf("tp=4", 1.05),
              estimateOf("tp=4,recompute=selective", 3.0)},
             space, seconds, estimate);
  ASSERT_EQ(found.fitting.size(), 2u);
  EXPECT_EQ(found.fitting.back().request.strategy.tp, 4);
}

} // namespace
