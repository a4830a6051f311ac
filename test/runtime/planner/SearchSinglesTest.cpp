//===- SearchSinglesTest.cpp - Searches with given seconds ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/SearchSingles.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

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
  EXPECT_EQ(screenedSteps(100, 16384, /*slices=*/true), 8);
}

// All steps are simulated of those that are near the best of the screened ones.
TEST(SearchSinglesTest, OnlyNearStrategiesAreFinalists) {
  SingleSpace space = fixedSpace();
  space.steps = 4;
  auto seconds = [](const PlanRequest &request, int64_t) {
    return request.strategy.tp == 4   ? 1.07
           : request.strategy.tp == 2 ? 1.04
                                      : 1;
  };
  const FoundSingles found =
      search({estimateOf("dp=4", 1), estimateOf("dp=2,tp=2", 1.04),
              estimateOf("tp=4", 1.07)},
             space, seconds);
  ASSERT_EQ(found.fitting.size(), 3u);
  EXPECT_EQ(found.fitting[0].steps, 4);
  EXPECT_EQ(found.fitting[1].steps, 4);
  EXPECT_EQ(found.fitting[2].steps, 1);
}

// Two degrees, each with sp and without, are ahead of the one that is the fastest with
// another kind of micro-batches. GPT of 2.7 B on 16 V100 was such a case.
TEST(SearchSinglesTest, FiveDegreesHaveOtherMicroBatches) {
  SingleSpace space;
  space.searchesSizes = false;
  auto seconds = [](const PlanRequest &request, int64_t) {
    const Strategy &strategy = request.strategy;
    if (strategy.dp == 8)
      return request.microBatches == "tokens" ? 0.96 : 1.06;
    return 1 + 0.01 * (strategy.pp > 1) + 0.02 * strategy.sp;
  };
  const FoundSingles found = search(
      {estimateOf("dp=4,tp=2", 1), estimateOf("dp=4,tp=2,sp=1", 1.02),
       estimateOf("dp=2,tp=2,pp=2", 1.01),
       estimateOf("dp=2,tp=2,pp=2,sp=1", 1.03), estimateOf("dp=8", 1.06)},
      space, seconds);
  ASSERT_FALSE(found.fitting.empty());
  EXPECT_EQ(found.fitting[0].request.strategy.dp, 8);
  EXPECT_EQ(found.fitting[0].request.microBatches, "tokens");
}

// Five orders of ranks of one strategy are ahead, but count as one start.
TEST(SearchSinglesTest, StartsHaveDifferentDegrees) {
  SingleSpace space;
  space.searchesSizes = false;
  auto seconds = [](const PlanRequest &request, int64_t) {
    return request.strategy.dp == 8
               ? (request.microBatches == "tokens" ? 0.96 : 1.06)
               : 1.0;
  };
  std::vector<AloneEstimate> estimates = {estimateOf("dp=8", 1.06)};
  for (const char *order :
       {"pp+dp+tp", "pp+tp+dp", "tp+pp+dp", "tp+dp+pp", "dp+tp+pp", "dp+pp+tp"})
    estimates.push_back(
        estimateOf(std::string("dp=2,tp=2,pp=2,order=") + order, 1));
  const FoundSingles found = search(estimates, space, seconds);
  ASSERT_GT(found.fitting.size(), 5u);
  EXPECT_EQ(found.fitting[0].request.strategy.dp, 8);
}

// Slices are of micro-batches without padding.
TEST(SearchSinglesTest, SlicesAreNotPadded) {
  for (const char *slices : {"none", "auto", "8"}) {
    SingleSpace space;
    space.searchesSizes = false;
    space.requests[0].slices = slices;
    std::set<std::string> kinds;
    auto seconds = [&](const PlanRequest &request, int64_t) {
      kinds.insert(request.microBatches);
      return 1.0;
    };
    AloneEstimate estimate = estimateOf("pp=4", 1);
    estimate.slices = slices;
    search({estimate}, space, seconds);
    EXPECT_EQ(kinds.count("padded"), std::string(slices) == "none");
    EXPECT_EQ(kinds.count("tokens"), 1u);
  }
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

// Each way to slice has estimates of its own, and is a choice of its own.
TEST(SearchSinglesTest, SlicesAreChoices) {
  SingleSpace space = fixedSpace();
  space.requests.resize(2);
  space.requests[1].slices = "auto";
  AloneEstimate whole = estimateOf("tp=4", 1.0),
                sliced = estimateOf("pp=4", 0.8);
  sliced.slices = "auto";
  int asked = 0;
  auto seconds = [&](const PlanRequest &request, int64_t) {
    ++asked;
    EXPECT_EQ(request.slices, request.strategy.pp > 1 ? "auto" : "");
    return request.slices.empty() ? 1.0 : 0.8;
  };
  const FoundSingles found = search({whole, sliced}, space, seconds);
  ASSERT_GE(found.fitting.size(), 2u);
  EXPECT_GT(asked, 3);
  const SingleStrategy &best = found.fitting.front();
  EXPECT_EQ(best.name(), "dp=1,tp=1,pp=4 slices=auto");
  EXPECT_EQ(best.flags(), "--strategy dp=1,tp=1,pp=4 --slices auto");
  // The same strategy without slices is another plan.
  const FoundSingles both =
      search({whole, estimateOf("pp=4", 0.85), sliced}, space,
             [](const PlanRequest &request, int64_t) {
               return !request.slices.empty()   ? 0.8
                      : request.strategy.pp > 1 ? 0.85
                                                : 1.0;
             });
  EXPECT_EQ(both.fitting.size(), 3u);
}

// A layer moves between neighbours at the ends, or from one end to the other. The cut for
// the lengths may be further away.
TEST(SearchSinglesTest, CutsAreSearched) {
  AloneEstimate estimate = estimateOf("pp=4", 1.0);
  estimate.strategy.layers = {8, 8, 8, 8};
  estimate.layersForLengths = {5, 9, 9, 9};
  // The largest stage decides. Layers of the last two take longer.
  auto seconds = [](const PlanRequest &request, int64_t) {
    std::vector<int> layers = request.strategy.layers;
    if (layers.empty())
      layers = {8, 8, 8, 8};
    double most = 0;
    for (size_t stage = 0; stage < layers.size(); ++stage)
      most = std::max(most, layers[stage] * (stage == 3   ? 1.25
                                             : stage == 2 ? 1.2
                                                          : 1.0));
    return most;
  };
  SingleSpace space = fixedSpace();
  const FoundSingles moved = search({estimate}, space, seconds);
  EXPECT_EQ(moved.fitting.front().seconds, 8 * 1.2);
  EXPECT_EQ(moved.fitting.front().request.strategy.layers,
            (std::vector<int>{9, 8, 8, 7}));
  estimate.layersForLengths = {9, 9, 9, 5};
  auto ofLengths = [&](const PlanRequest &request, int64_t step) {
    return request.strategy.layers == estimate.layersForLengths
               ? 7.0
               : seconds(request, step);
  };
  const FoundSingles found = search({estimate}, space, ofLengths);
  EXPECT_EQ(found.fitting.front().request.strategy.layers,
            estimate.layersForLengths);
}

// Chosen modes that gain nothing by the estimate are the plan that was simulated.
TEST(SearchSinglesTest, ModesWithoutGainAreNotSimulated) {
  for (double gain : {1.0, 0.9}) {
    int simulated = 0;
    auto seconds = [&](const PlanRequest &request, int64_t) {
      simulated += request.recompute == chooseRecomputeWord;
      return request.recompute == chooseRecomputeWord ? gain : 1.0;
    };
    auto estimate = [&](const PlanRequest &request, int64_t) {
      return request.recompute == chooseRecomputeWord ? gain : 1.0;
    };
    search({estimateOf("dp=4", 1.0)}, fixedSpace(), seconds, estimate);
    EXPECT_EQ(simulated > 0, gain < 1);
  }
}

} // namespace
