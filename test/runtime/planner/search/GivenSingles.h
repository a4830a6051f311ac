//===- GivenSingles.h - Searches with given seconds -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_PLANNER_SEARCH_GIVENSINGLES_H
#define DYNA_TEST_RUNTIME_PLANNER_SEARCH_GIVENSINGLES_H

#include "runtime/planner/search/SearchSingles.h"

#include <gtest/gtest.h>

#include <functional>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

namespace dyna {

inline constexpr double never = std::numeric_limits<double>::infinity();

inline AloneEstimate estimateOf(const std::string &strategy, double seconds) {
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
inline FoundSingles search(const std::vector<AloneEstimate> &estimates,
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

inline SingleSpace fixedSpace() {
  SingleSpace space;
  space.searchesKinds = space.searchesSizes = false;
  return space;
}

/// Requests that were estimated or simulated, by name.
struct Asked {
  std::set<std::string> estimated, simulated;
  SecondsOf estimating(SecondsOf of) {
    return [this, of](const PlanRequest &request, int64_t step) {
      estimated.insert(nameOf(request));
      return of(request, step);
    };
  }
  SecondsOf simulating(SecondsOf of) {
    return [this, of](const PlanRequest &request, int64_t step) {
      simulated.insert(nameOf(request));
      return of(request, step);
    };
  }
  static std::string nameOf(const PlanRequest &request) {
    SingleStrategy single;
    single.request = request;
    return single.name();
  }
};

/// Seconds by name; other requests take `others`.
inline SecondsOf table(const std::map<std::string, double> &seconds,
                       double others = 9) {
  return [=](const PlanRequest &request, int64_t) {
    auto found = seconds.find(Asked::nameOf(request));
    return found == seconds.end() ? others : found->second;
  };
}

/// A space that neither shows nor changes what its estimates do not favour.
inline SingleSpace narrowSpace() {
  SingleSpace space = fixedSpace();
  space.mostShown = space.mostRefined = 0;
  return space;
}

inline AloneEstimate pressedEstimate(const std::string &strategy,
                                     double seconds, double unlimited) {
  AloneEstimate estimate = estimateOf(strategy, seconds);
  estimate.unlimitedSeconds = unlimited;
  return estimate;
}

} // namespace dyna

#endif // DYNA_TEST_RUNTIME_PLANNER_SEARCH_GIVENSINGLES_H
