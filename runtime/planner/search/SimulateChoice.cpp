//===- SimulateChoice.cpp - Simulates what a search found -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/SimulateChoice.h"

#include "runtime/base/text/Text.h"
#include "runtime/planner/request/LengthRanges.h"

#include <algorithm>
#include <limits>

namespace dyna {

StatusOr<std::unique_ptr<SizedSteps>> sizeSet(const CostModel &costs,
                                              const StrategySpace &space,
                                              const ChosenStrategies &chosen,
                                              PlanRequest request) {
  SizedSteps::Asked asked;
  DYNA_ASSIGN_OR_RETURN(asked.strategies, parseStrategies(chosen.strategies()));
  std::vector<std::string> names, notes;
  for (Strategy &strategy : asked.strategies) {
    names.push_back(strategy.name);
    if (!request.recompute.empty()) {
      strategy.recompute.reset();
      strategy.layers.clear();
    }
  }
  DYNA_ASSIGN_OR_RETURN(asked.ranges,
                        parseLengthRanges(chosen.ranges(), names));
  asked.request = std::move(request);
  asked.request.tokensPerBatch = space.tokensPerStep;
  asked.memoryBytes = space.memoryBytes;
  asked.longest = chosen.longest();
  return SizedSteps::create(costs, std::move(asked), notes);
}

/// Infinitely many seconds where no order of a step fits.
static StatusOr<double>
playOrLack(const SizedSteps &sized,
           const std::vector<std::vector<int64_t>> &steps) {
  auto seconds = sized.play(steps);
  if (seconds.status().code() == StatusCode::ResourceExhausted)
    return std::numeric_limits<double>::infinity();
  return seconds;
}

namespace {

/// Drawn steps, planned and simulated under what was found and single strategies.
class DrawnSteps {
public:
  DrawnSteps(const CostModel &costs, const StrategySpace &space,
             std::vector<int64_t> lengths)
      : costs_(costs), space_(space) {
    // No plan has samples longer than this.
    cutLengths(lengths, costs.model().manifest().facts().positions());
    steps_ = drawSteps(std::move(lengths), space.tokensPerStep);
  }

  /// Simulates the result of a search. `set` was found with the flags of the
  /// space; null: one strategy.
  StatusOr<ChosenStrategies::Played> play(const ChosenStrategies &chosen,
                                          const SizedSteps *set) {
    longest_ = chosen.longest();
    ChosenStrategies::Played played;
    played.steps = static_cast<int64_t>(steps_.size());
    played.found = std::numeric_limits<double>::infinity();
    played.request = space_.request;
    if (set) {
      tell(chosen.strategies());
      DYNA_ASSIGN_OR_RETURN(played.found, playOrLack(*set, steps_));
    }
    if (!set) {
      DYNA_ASSIGN_OR_RETURN(played.found, playExpected(chosen));
    }
    DYNA_ASSIGN_OR_RETURN(auto found, singles(chosen.candidates().alone()));
    if (!found.fitting.empty())
      played.alone = found.fitting.front();
    if (set && space_.searchesFlags)
      DYNA_RETURN_IF_ERROR(playWithFlags(chosen, found, played));
    return played;
  }

private:
  void tell(const std::string &what) const {
    space_.tell(formatText("%d drawn step%s planned and played: %s",
                           steps_.size(), steps_.size() == 1 ? " is" : "s are",
                           what));
  }

  StatusOr<FoundSingles> singles(const std::vector<AloneEstimate> &estimates) {
    SingleSpace singles;
    singles.requests = {space_.request};
    singles.requests[0].tokensPerBatch = space_.tokensPerStep;
    singles.searchesRecompute = space_.request.recompute.empty();
    singles.searchesChosenModes = space_.searchesFlags;
    singles.searchesKinds =
        space_.searchesFlags && space_.request.microBatches.empty();
    singles.searchesSizes =
        space_.searchesFlags && space_.request.tokensPerMicroBatch == 0;
    singles.steps = static_cast<int64_t>(steps_.size());
    singles.screenedSteps = singles.steps;
    // Planning large steps takes seconds each.
    constexpr int64_t largeStep = 1 << 19;
    singles.mostRefined = space_.tokensPerStep > largeStep ? 1 : 2;
    singles.mostShown = 1;
    return searchSingles(estimates, singles,
                         {[&](const PlanRequest &request, int64_t count) {
                            return playAlone(request, count);
                          },
                          [&](const PlanRequest &request, int64_t count) {
                            return estimateAlone(request, count);
                          }},
                         [&](const std::string &next) { tell(next); });
  }

  /// Simulates the single strategy that estimates favour.
  StatusOr<double> playExpected(const ChosenStrategies &chosen) const {
    PlanRequest request = space_.request;
    request.strategy = chosen.chosen().front();
    request.tokensPerBatch = space_.tokensPerStep;
    if (!request.recompute.empty())
      request.strategy.recompute.reset();
    tell(describeStrategy(request.strategy));
    auto seconds = playAlone(request, static_cast<int64_t>(steps_.size()));
    if (seconds.status().code() == StatusCode::ResourceExhausted)
      return std::numeric_limits<double>::infinity();
    return seconds;
  }

  StatusOr<std::unique_ptr<SizedSteps>> size(const PlanRequest &request,
                                             bool isEstimate) const {
    SizedSteps::Asked asked = SizedSteps::Asked::alone(request);
    asked.isScreening = isEstimate;
    asked.memoryBytes = space_.memoryBytes;
    asked.longest = longest_;
    std::vector<std::string> notes;
    DYNA_ASSIGN_OR_RETURN(auto sized,
                          SizedSteps::create(costs_, std::move(asked), notes));
    if (sized->lackingBytes() > 0)
      return Status::resourceExhausted(
          formatText("a rank lacks %s", formatBytes(sized->lackingBytes())));
    return sized;
  }

  StatusOr<double> playAlone(const PlanRequest &request, int64_t count) const {
    DYNA_ASSIGN_OR_RETURN(auto sized, size(request, /*isEstimate=*/false));
    return sized->play({steps_.begin(), steps_.begin() + count});
  }

  StatusOr<double> estimateAlone(const PlanRequest &request,
                                 int64_t count) const {
    DYNA_ASSIGN_OR_RETURN(auto sized, size(request, /*isEstimate=*/true));
    return sized->estimate({steps_.begin(), steps_.begin() + count});
  }

  /// Simulates the set with chosen recomputation, and with the micro-batches of
  /// the best single strategies. Both sides then have the same choices.
  Status playWithFlags(const ChosenStrategies &chosen,
                       const FoundSingles &found,
                       ChosenStrategies::Played &played) const {
    std::vector<PlanRequest> tried;
    for (bool choosesModes : {false, true})
      for (size_t i = 0; i <= std::min<size_t>(found.fitting.size(), 3); ++i) {
        PlanRequest request = space_.request;
        if (choosesModes && !request.recompute.empty())
          continue;
        if (choosesModes)
          request.recompute = chooseRecomputeWord;
        if (i > 0) {
          const PlanRequest &single = found.fitting[i - 1].request;
          request.microBatches = single.microBatches;
          request.tokensPerMicroBatch = single.tokensPerMicroBatch;
        }
        const bool isKnown =
            std::any_of(tried.begin(), tried.end(), [&](const auto &other) {
              return other.recompute == request.recompute &&
                     other.microBatches == request.microBatches &&
                     other.tokensPerMicroBatch == request.tokensPerMicroBatch;
            });
        if (isKnown)
          continue;
        tried.push_back(request);
        if (tried.size() == 1)
          continue; // it was simulated before
        tell(chosen.strategies());
        DYNA_ASSIGN_OR_RETURN(double seconds, playSet(chosen, request));
        if (seconds < played.found) {
          played.found = seconds;
          played.request = request;
        }
      }
    return Status::ok();
  }

  /// Simulates a set. Infinite if it does not fit, or if its strategies are
  /// equal without modes.
  StatusOr<double> playSet(const ChosenStrategies &chosen,
                           const PlanRequest &request) const {
    constexpr double never = std::numeric_limits<double>::infinity();
    auto set = sizeSet(costs_, space_, chosen, request);
    if (set.status().code() == StatusCode::InvalidArgument)
      return never;
    DYNA_RETURN_IF_ERROR(set.status());
    return (*set)->lackingBytes() > 0 ? never : playOrLack(**set, steps_);
  }

  const CostModel &costs_;
  const StrategySpace &space_;
  int64_t longest_ = 0;
  std::vector<std::vector<int64_t>> steps_;
};

} // namespace

StatusOr<ChosenStrategies::Played>
simulateChoice(const CostModel &costs, const StrategySpace &space,
               const ChosenStrategies &chosen, const SizedSteps *set,
               std::vector<int64_t> lengths) {
  return DrawnSteps(costs, space, std::move(lengths)).play(chosen, set);
}

} // namespace dyna
