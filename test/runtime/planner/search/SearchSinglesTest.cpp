//===- SearchSinglesTest.cpp - Searches with given seconds ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/runtime/planner/search/GivenSingles.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>

using namespace dyna;

namespace {

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

// The first order of ranks takes 1.1 times its estimate, so the next one does too, and is
// far from the best.
TEST(SearchSinglesTest, OneStepCorrectsTheEstimatesOfItsDegrees) {
  const char *first = "dp=2,tp=2,pp=1,order=tp+pp+dp",
             *next = "dp=2,tp=2,pp=1,order=tp+dp+pp";
  for (double took : {1.1, 1.0}) {
    Asked asked;
    auto seconds = asked.estimating([&](const PlanRequest &request, int64_t) {
      return request.strategy.dp == 4 ? 0.99 : took;
    });
    SingleSpace space = narrowSpace();
    const FoundSingles found =
        search({estimateOf("dp=4", 0.99), estimateOf(first, 1.0),
                estimateOf(next, 1.01)},
               space, seconds);
    EXPECT_EQ(asked.estimated.count(next), took == 1.0);
    EXPECT_EQ(asked.estimated.count(first), 1u);
    EXPECT_EQ(found.skipped, took == 1.0 ? 0 : 2);
  }
}

// Larger micro-batches are tried for degrees within 1.5 times the best, with the fastest
// of their modes.
TEST(SearchSinglesTest, SizesAreThoseOfTheFastestMode) {
  for (double near : {1.4, 1.6}) {
    Asked asked;
    SingleSpace space = narrowSpace();
    space.mostShown = 10;
    space.searchesSizes = true;
    const double none = near + 0.2;
    search({estimateOf("dp=4", 1), estimateOf("tp=4", 1.05),
            estimateOf("tp=4,recompute=full", 1.1)},
           space, table({{"dp=4,tp=1,pp=1", 1.0}}),
           asked.estimating(table({{"dp=4,tp=1,pp=1", 1.0},
                                   {"dp=1,tp=4,pp=1", none},
                                   {"dp=1,tp=4,pp=1,recompute=full", near}})));
    EXPECT_EQ(
        asked.estimated.count("dp=1,tp=4,pp=1,recompute=full tokens=16384"),
        near == 1.4);
    EXPECT_EQ(asked.estimated.count("dp=1,tp=4,pp=1 tokens=16384"), 0u);
  }
}

// Modes are chosen where memory asks for some recomputation, and where they may reach
// the best: not below the time without limits, nor a quarter below one mode.
TEST(SearchSinglesTest, ModesAreChosenUnderPressure) {
  const std::string chosen = "dp=1,tp=4,pp=1 recompute=auto";
  struct Case {
    double none, full, unlimited, other;
    bool isChosen;
  };
  for (const Case &one :
       {Case{1.05, 1.2, 1.0, 0.97, true}, Case{1.005, 1.2, 1.0, 0.97, false},
        Case{never, 2.0, 0.5, 1.0, false}, Case{never, 1.3, 0.5, 1.0, true},
        Case{1.2, 1.3, 1.1, 1.0, false}})
    for (bool searched : {true, false}) {
      SCOPED_TRACE(one.none * 10 + one.full);
      Asked asked;
      SingleSpace space = narrowSpace();
      space.searchesChosenModes = searched;
      search({estimateOf("dp=4", one.other),
              pressedEstimate("tp=4", one.none, one.unlimited),
              pressedEstimate("tp=4,recompute=selective", one.full, 0),
              pressedEstimate("tp=4,recompute=full", one.full + 1, 0)},
             space, table({}, one.other),
             asked.estimating(table({}, one.other)));
      EXPECT_EQ(asked.estimated.count(chosen), one.isChosen && searched);
    }
}

// The word of a request picks the estimate of its mode. Without room for `full` nothing
// can be chosen, which is one strategy that does not fit.
TEST(SearchSinglesTest, WordsOfRecomputationHaveTheirEstimates) {
  std::vector<AloneEstimate> estimates;
  for (const char *mode : {"none", "selective", "full"}) {
    estimates.push_back(estimateOf(std::string("tp=4,recompute=") + mode, 1));
    estimates.back().besideSeconds = static_cast<double>(estimates.size());
  }
  SingleSpace space = narrowSpace();
  space.searchesRecompute = false;
  for (size_t mode = 0; mode < 3; ++mode) {
    space.requests[0].recompute =
        std::vector<std::string>{"none", "selective", "full"}[mode];
    const FoundSingles found = search(estimates, space, table({}, 1));
    ASSERT_EQ(found.fitting.size(), 1u);
    EXPECT_EQ(found.fitting[0].expected, 2.0 + static_cast<double>(mode));
  }
  space.requests[0].recompute = chooseRecomputeWord;
  for (AloneEstimate &estimate : estimates)
    estimate.reason = "no room", estimate.seconds = never;
  const FoundSingles found = search(estimates, space, table({}, 1));
  EXPECT_EQ(found.fitting.size(), 0u);
  EXPECT_EQ(found.lacking.size(), 1u);
}

// Strategies within 1.08 times the best have other choices tried, or all if the search is
// exhaustive. Estimates above 1.01 times that of the start are left out.
TEST(SearchSinglesTest, OnlyNearStrategiesAreChanged) {
  const std::string changed = "dp=1,tp=4,pp=1 tokens";
  for (bool all : {false, true})
    for (double seconds : {1.07, 1.2})
      for (double estimated : {1.0, 1.02}) {
        Asked asked;
        SingleSpace space;
        space.searchesSizes = space.searchesChosenModes = false;
        space.isExhaustive = all;
        space.mostRefined = all ? 1 : 2;
        const FoundSingles found =
            search({estimateOf("dp=4", 1), estimateOf("tp=4", seconds)}, space,
                   asked.simulating(table(
                       {{"dp=4,tp=1,pp=1", 1.0}, {"dp=1,tp=4,pp=1", seconds}})),
                   table({{"dp=4,tp=1,pp=1", 1.0},
                          {"dp=1,tp=4,pp=1", seconds},
                          {changed, seconds * estimated}}));
        const bool isNear = seconds == 1.07 && estimated == 1.0;
        EXPECT_EQ(asked.simulated.count(changed), all || isNear);
        // Of four changes those that were not simulated; or of two.
        EXPECT_EQ(found.skipped, all               ? 0
                                 : isNear          ? 3
                                 : seconds == 1.07 ? 4
                                                   : 2);
      }
}

// An exhaustive search with a limit simulates what is within it, and changes what is.
TEST(SearchSinglesTest, ExhaustiveSearchesMayHaveALimit) {
  const std::string first = "dp=2,tp=2,pp=1,order=tp+dp+pp",
                    next = "dp=2,tp=2,pp=1,order=tp+pp+dp";
  for (double limit : {1.3, 1.5, never}) {
    Asked asked;
    SingleSpace space = narrowSpace();
    space.searchesKinds = true;
    space.searchesChosenModes = false;
    space.isExhaustive = true;
    space.exhaustiveLimit = limit;
    const SecondsOf seconds = table({{"dp=4,tp=1,pp=1", 1.0},
                                     {"dp=4,tp=1,pp=1 tokens", 1.2},
                                     {"dp=1,tp=4,pp=1", 1.2},
                                     {first, 1.4},
                                     {next, 1.4},
                                     {"dp=1,tp=4,pp=1 tokens", 1.4},
                                     {"dp=1,tp=4,pp=1 padded", 9}});
    const FoundSingles found =
        search({estimateOf("dp=4", 1), estimateOf("tp=4", 1),
                estimateOf(first, 1), estimateOf(next, 1)},
               space, asked.simulating(seconds), asked.estimating(seconds));
    EXPECT_EQ(asked.simulated.count("dp=1,tp=4,pp=1"), 1u);
    EXPECT_EQ(asked.simulated.count("dp=4,tp=1,pp=1 tokens"), 1u);
    EXPECT_EQ(asked.simulated.count(first), limit > 1.4);
    EXPECT_EQ(asked.estimated.count(next), limit > 1.4);
    EXPECT_EQ(asked.simulated.count("dp=1,tp=4,pp=1 tokens"), limit > 1.4);
    EXPECT_EQ(asked.simulated.count("dp=1,tp=4,pp=1 padded"), limit == never);
    EXPECT_EQ(asked.simulated.count(first + " tokens"), limit == never);
  }
}

// Sizes grow and shrink by powers of two within what a run takes.
TEST(SearchSinglesTest, SizesHaveLimits) {
  for (double power : {-1.0, 1.0}) {
    SingleSpace space = narrowSpace();
    space.mostRefined = 1;
    space.searchesSizes = true;
    int64_t least = maxMicroBatchTokens, most = 0;
    const FoundSingles found = search(
        {estimateOf("dp=4", 1)}, space,
        [&](const PlanRequest &request, int64_t) {
          const int64_t size = request.tokensPerMicroBatch;
          if (size > 0) {
            least = std::min(least, size);
            most = std::max(most, size);
          }
          return std::pow(static_cast<double>(size > 0 ? size : 4096), power);
        });
    const int64_t best = found.fitting[0].request.tokensPerMicroBatch;
    EXPECT_EQ(best, power > 0 ? least : most);
    EXPECT_GE(least, 256);
    EXPECT_LE(most, maxMicroBatchTokens);
    EXPECT_TRUE(power > 0 ? best < 512 : best > maxMicroBatchTokens / 2);
  }
}

// Degrees that do not fit are replaced by the next ones in what is shown, far ones too.
TEST(SearchSinglesTest, FarStrategiesAreShownInPlaceOfMisfits) {
  for (bool fits : {true, false}) {
    SingleSpace space = narrowSpace();
    space.mostShown = 2;
    const FoundSingles found = search(
        {estimateOf("dp=4", 1), estimateOf("tp=4", 1.1), estimateOf("pp=4", 5)},
        space,
        table({{"dp=4,tp=1,pp=1", 1.0},
               {"dp=1,tp=4,pp=1", fits ? 1.1 : never},
               {"dp=1,tp=1,pp=4", 5.0}}),
        table({}, 1.0));
    ASSERT_EQ(found.fitting.size(), 2u);
    EXPECT_EQ(found.fitting[1].request.strategy.pp, fits ? 1 : 4);
    EXPECT_EQ(found.skipped, fits ? 1 : 0);
  }
  // None is shown: far ones are left out, and near ones whose step is not near.
  Asked asked;
  search(
      {estimateOf("dp=4", 1), estimateOf("tp=4", 1.1), estimateOf("pp=4", 5)},
      narrowSpace(), asked.simulating(table({}, 1.0)),
      table({{"dp=4,tp=1,pp=1", 1.0}, {"dp=1,tp=4,pp=1", 1.1}}));
  EXPECT_EQ(asked.simulated, (std::set<std::string>{"dp=4,tp=1,pp=1"}));
}

// Of equals the one that says less is first; misfits are in the order of their names; and
// chosen modes leave the strategy without one.
TEST(SearchSinglesTest, OrderOfEqualsAndMisfits) {
  SingleSpace space = narrowSpace();
  space.searchesChosenModes = false;
  FoundSingles found =
      search({estimateOf("tp=4,recompute=full", 1), estimateOf("dp=4", 1)},
             space, table({}, 1.0));
  ASSERT_EQ(found.fitting.size(), 2u);
  EXPECT_EQ(found.fitting[0].name(), "dp=4,tp=1,pp=1");
  found = search({estimateOf("tp=4", 1), estimateOf("dp=4", 2),
                  estimateOf("dp=2,tp=2", 3)},
                 space, table({}, never));
  ASSERT_EQ(found.lacking.size(), 3u);
  for (size_t i = 1; i < 3; ++i)
    EXPECT_LT(found.lacking[i - 1].name(), found.lacking[i].name());
  space.mostRefined = 1;
  space.searchesChosenModes = true;
  search({estimateOf("tp=4,recompute=full", 1)}, space,
         [](const PlanRequest &request, int64_t) {
           EXPECT_TRUE(request.recompute.empty() ||
                       !request.strategy.recompute);
           return request.recompute.empty() ? 1.0 : 0.5;
         });
}

// All steps decide between finalists.
TEST(SearchSinglesTest, AllStepsSortTheFinalists) {
  SingleSpace space = narrowSpace();
  space.steps = 2;
  const FoundSingles found =
      search({estimateOf("dp=4", 1), estimateOf("tp=4", 1.01)}, space,
             [](const PlanRequest &request, int64_t step) {
               return request.strategy.tp > 1 ? 1.01 : step == 0 ? 1.0 : 1.1;
             });
  ASSERT_EQ(found.fitting.size(), 2u);
  EXPECT_EQ(found.fitting[0].request.strategy.tp, 4);
}

// Strategies are estimated in the order of their own estimates, whatever order they have.
TEST(SearchSinglesTest, EstimatesSortStrategies) {
  Asked asked;
  search({estimateOf("tp=4", 3), estimateOf("dp=4", 1)}, narrowSpace(),
         table({}, 1), asked.estimating(table({}, 1)));
  EXPECT_EQ(asked.estimated, (std::set<std::string>{"dp=4,tp=1,pp=1"}));
}

// A strategy whose step has no estimate is not one of the two that are shown.
TEST(SearchSinglesTest, WhatHasNoEstimateIsNotShown) {
  SingleSpace space = narrowSpace();
  space.mostShown = 2;
  std::set<int> estimated;
  auto found = searchSingles(
      {estimateOf("dp=4", 1), estimateOf("tp=4", 1.1), estimateOf("pp=4", 5)},
      space,
      {[](const PlanRequest &, int64_t) -> StatusOr<double> { return 1.0; },
       [&](const PlanRequest &request, int64_t) -> StatusOr<double> {
         estimated.insert(request.strategy.pp);
         return request.strategy.dp == 4 ? never : 1.0;
       }},
      [](const std::string &) {});
  ASSERT_TRUE(found.isOk()) << found.status().message();
  EXPECT_EQ(estimated.count(4), 1u);
}

// A strategy that a run refuses does not fit; another failure ends the search.
TEST(SearchSinglesTest, RefusedStrategiesDoNotFit) {
  for (bool isRefused : {true, false}) {
    auto found = searchSingles(
        {estimateOf("dp=4", 1)}, narrowSpace(),
        {[&](const PlanRequest &, int64_t) -> StatusOr<double> {
           return isRefused ? Status::invalidArgument("no such strategy")
                            : Status::internal("a fault");
         },
         [](const PlanRequest &, int64_t) -> StatusOr<double> { return 1.0; }},
        [](const std::string &) {});
    ASSERT_EQ(found.isOk(), isRefused);
    if (isRefused) {
      ASSERT_EQ(found->lacking.size(), 1u);
      EXPECT_EQ(found->lacking[0].reason, "no such strategy");
    }
  }
}

// The first step of degrees corrects the others, not the last one.
TEST(SearchSinglesTest, TheFirstStepCorrects) {
  const std::string degrees = "dp=2,tp=2,pp=1,order=";
  Asked asked;
  search({estimateOf(degrees + "tp+dp+pp", 1),
          estimateOf(degrees + "tp+pp+dp", 1.01),
          estimateOf(degrees + "pp+dp+tp", 1.02)},
         narrowSpace(), table({}, 1),
         asked.estimating(table(
             {{degrees + "tp+dp+pp", 1.0}, {degrees + "tp+pp+dp", 1.3}}, 1)));
  EXPECT_EQ(asked.estimated.size(), 3u);
}

// At most so many finalists have all steps simulated.
TEST(SearchSinglesTest, FinalistsHaveALimit) {
  SingleSpace space = narrowSpace();
  space.steps = 2;
  space.mostFinal = 1;
  const FoundSingles found =
      search({estimateOf("dp=4", 1), estimateOf("tp=4", 1.01)}, space,
             table({{"dp=4,tp=1,pp=1", 1.0}, {"dp=1,tp=4,pp=1", 1.01}}));
  ASSERT_EQ(found.fitting.size(), 2u);
  EXPECT_EQ(found.fitting[0].steps, 2);
  EXPECT_EQ(found.fitting[1].steps, 1);
}

} // namespace
