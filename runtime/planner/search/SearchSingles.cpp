//===- SearchSingles.cpp - Searches the best single strategy --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/SearchSingles.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <set>
#include <string_view>
#include <tuple>

namespace dyna {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
/// Instead of `mostRefined`.
constexpr size_t mostRefinedExhaustively = 8;

std::string degreesOf(const Strategy &strategy) {
  return formatText("%d,%d,%d,%d,%d", strategy.dp, strategy.tp, strategy.pp,
                    strategy.zero, strategy.sp);
}

std::string modeText(const Strategy &strategy) {
  return strategy.recompute ? describeRecompute({*strategy.recompute}) : "";
}

/// Returns a key of everything that plans depend on.
std::string keyOf(const PlanRequest &request) {
  return describeStrategy(request.strategy) + "|" + request.recompute + "|" +
         request.microBatches + "|" + request.pipeline + "|" +
         std::to_string(request.tokensPerMicroBatch) + "|" + request.slices;
}

/// Compares by simulated, then by estimated seconds. Of equals, the shorter
/// description comes first.
bool isFaster(const SingleStrategy &a, const SingleStrategy &b) {
  const std::string keyA = keyOf(a.request), keyB = keyOf(b.request);
  return std::tuple(a.seconds, a.expected, keyA.size(), keyA) <
         std::tuple(b.seconds, b.expected, keyB.size(), keyB);
}

class Search {
public:
  Search(const SingleSpace &space, const SingleRuns &runs,
         const std::function<void(const std::string &)> &tell)
      : space_(space), runs_(runs), tell_(tell) {}

  StatusOr<FoundSingles> run(const std::vector<AloneEstimate> &estimates) {
    for (const AloneEstimate &estimate : estimates)
      addModes(estimate);
    addChosenModes();
    DYNA_RETURN_IF_ERROR(estimateSteps());
    DYNA_RETURN_IF_ERROR(simulateAll());
    DYNA_RETURN_IF_ERROR(refine());
    DYNA_RETURN_IF_ERROR(simulateFinalists());
    return std::move(found_);
  }

private:
  /// Returns a request with the strategy of an estimate. The cut of its layers
  /// is what a run chooses itself.
  static PlanRequest requestOf(PlanRequest request, const Strategy &strategy) {
    request.strategy = strategy;
    request.strategy.layers.clear();
    if (!request.recompute.empty() ||
        strategy.recompute == plan::RECOMPUTE_NONE)
      request.strategy.recompute.reset();
    return request;
  }

  void addModes(const AloneEstimate &estimate) {
    for (const PlanRequest &asked : space_.requests) {
      if (asked.slices != estimate.slices)
        continue;
      SingleStrategy single;
      single.request = requestOf(asked, estimate.strategy);
      single.expected = estimate.seconds;
      single.beside = estimate.besideSeconds;
      single.seconds = never;
      single.reason = estimate.reason;
      single.layers = estimate.strategy.layers;
      single.layersForLengths = estimate.layersForLengths;
      const bool isChosen = asked.recompute == chooseRecomputeWord;
      if (space_.searchesRecompute || isChosen)
        noteModes(single, estimate);
      else if (estimate.strategy.recompute != modeOf(asked.recompute))
        continue;
      if (!isChosen || (!single.fits() &&
                        estimate.strategy.recompute == plan::RECOMPUTE_FULL))
        (single.fits() ? open_ : found_.lacking).push_back(std::move(single));
    }
  }

  /// Returns the mode whose estimates are used for a word.
  static plan::Recompute modeOf(const std::string &word) {
    return word == "none"        ? plan::RECOMPUTE_NONE
           : word == "selective" ? plan::RECOMPUTE_SELECTIVE
                                 // This mode leaves the most room.
                                 : plan::RECOMPUTE_FULL;
  }

  /// Records what an estimate says about the modes of one strategy.
  void noteModes(const SingleStrategy &single, const AloneEstimate &estimate) {
    PlanRequest without = single.request;
    without.strategy.recompute.reset();
    Modes &modes = modes_[keyOf(without)];
    modes.layers = single.layers;
    modes.layersForLengths = single.layersForLengths;
    modes.request = without;
    modes.best = std::min(modes.best, estimate.seconds);
    modes.beside = estimate.besideSeconds;
    if (estimate.strategy.recompute == plan::RECOMPUTE_NONE) {
      modes.none = estimate.seconds;
      modes.unlimited = estimate.unlimitedSeconds;
    }
  }

  /// Modes are also chosen for each stage and micro-batch, where memory asks for
  /// some recomputation or for smaller micro-batches.
  void addChosenModes() {
    constexpr double pressed = 1.01, mostGained = 0.75;
    for (const auto &[key, modes] : modes_) {
      const bool isPressed =
          !space_.searchesRecompute || modes.none > pressed * modes.unlimited;
      if (!std::isfinite(modes.best) || !isPressed ||
          (space_.searchesRecompute && !space_.searchesChosenModes))
        continue;
      SingleStrategy single;
      single.request = modes.request;
      single.layers = modes.layers;
      single.layersForLengths = modes.layersForLengths;
      single.beside = modes.beside;
      single.request.recompute = chooseRecomputeWord;
      single.expected = std::max(modes.unlimited, mostGained * modes.best);
      single.seconds = never;
      open_.push_back(std::move(single));
    }
  }

  /// Replaces estimates of strategies by those of a step.
  Status estimateSteps() {
    std::sort(open_.begin(), open_.end(), isFaster); // none has been simulated
    std::vector<SingleStrategy> near;
    std::set<std::string> shown;
    // Ratio of the estimate of a step to the first estimate, by degrees and
    // modes. Orders of ranks change the same parts of both estimates.
    std::map<std::string, double> corrections;
    double best = never;
    for (SingleStrategy &single : open_) {
      const double first = single.expected;
      double most = space_.isExhaustive ? never
                    : single.request.recompute == chooseRecomputeWord
                        ? mostAboveBestChosen
                        : mostAboveBest;
      const std::string key =
          degreesOf(single.request.strategy) + "|" + single.request.recompute +
          "|" + modeText(single.request.strategy) + "|" + single.request.slices;
      if (auto known = corrections.find(key); known != corrections.end()) {
        single.expected *= known->second;
        most = limit(mostAboveCorrected);
      }
      const bool isShown = shown.size() < space_.mostShown &&
                           shown.count(degreesOf(single.request.strategy)) == 0;
      if (!isShown && single.expected > most * best) {
        far_.push_back(std::move(single));
        continue;
      }
      tell_(formatText("%d estimated, next is %s", near.size(), single.name()));
      DYNA_ASSIGN_OR_RETURN(bool isEstimated, estimate(single));
      if (!isEstimated)
        continue;
      best = std::min(best, single.expected);
      corrections.try_emplace(key, single.expected / first);
      if (std::isfinite(single.expected))
        shown.insert(degreesOf(single.request.strategy));
      near.push_back(std::move(single));
    }
    open_ = std::move(near);
    return space_.searchesSizes ? addSizes(best) : Status::ok();
  }

  /// Adds larger micro-batches of the best strategy of each degrees: how much they gain
  /// differs from degrees to degrees.
  Status addSizes(double best) {
    constexpr double mostGained = 1.5;
    std::map<std::string, SingleStrategy> bestOf;
    for (const SingleStrategy &single : open_) {
      auto [found, isNew] =
          bestOf.try_emplace(degreesOf(single.request.strategy), single);
      if (!isNew && single.expected < found->second.expected)
        found->second = single;
    }
    for (auto &[degrees, single] : bestOf)
      for (int64_t size : {4 * kUsualMicroBatch, 16 * kUsualMicroBatch}) {
        if (single.expected > mostGained * best)
          continue;
        SingleStrategy larger = single;
        larger.request.tokensPerMicroBatch = size;
        DYNA_ASSIGN_OR_RETURN(bool isEstimated, estimate(larger));
        if (isEstimated)
          open_.push_back(std::move(larger));
      }
    return Status::ok();
  }

  /// Replaces the estimate by that of a step. Returns false if the request does not fit,
  /// which is recorded.
  StatusOr<bool> estimate(SingleStrategy &single) {
    auto seconds = runs_.estimate(single.request, space_.screenedSteps);
    if (doesNotFit(seconds.status())) {
      single.reason = seconds.status().message();
      single.seconds = never;
      found_.lacking.push_back(std::move(single));
      return false;
    }
    DYNA_RETURN_IF_ERROR(seconds.status());
    single.expected = *seconds + single.beside;
    return true;
  }

  static bool doesNotFit(const Status &status) {
    return status.code() == StatusCode::ResourceExhausted ||
           status.code() == StatusCode::InvalidArgument;
  }

  /// A limit of estimates, or that of an exhaustive search.
  double limit(double ofSearch) const {
    return space_.isExhaustive ? space_.exhaustiveLimit : ofSearch;
  }

  Status simulateAll() {
    std::sort(open_.begin(), open_.end(), isFaster);
    std::set<std::string> shown;
    for (SingleStrategy &single : open_)
      DYNA_RETURN_IF_ERROR(
          simulateNear(single, limit(mostAboveSimulated), shown));
    for (SingleStrategy &single : far_)
      DYNA_RETURN_IF_ERROR(simulateNear(single, /*most=*/0, shown));
    return Status::ok();
  }

  /// Simulates a strategy whose estimate is at most `most` times the best simulated time.
  /// Some of other degrees are simulated in any case, to be shown beside it.
  Status simulateNear(SingleStrategy &single, double most,
                      std::set<std::string> &shown) {
    const std::string degrees = degreesOf(single.request.strategy);
    const bool isShown =
        shown.size() < space_.mostShown && shown.count(degrees) == 0;
    if (!isShown && !(single.expected <= most * best_)) {
      ++found_.skipped;
      return Status::ok();
    }
    const size_t before = found_.fitting.size();
    DYNA_RETURN_IF_ERROR(screen(single));
    // If it does not fit, another mode of these degrees may fit.
    if (found_.fitting.size() > before)
      shown.insert(degrees);
    return Status::ok();
  }

  /// Simulates the screened steps, unless they have been.
  Status screen(const SingleStrategy &single) {
    return known_.insert(keyOf(single.request)).second
               ? simulate(single, space_.screenedSteps)
               : Status::ok();
  }

  /// Adds the strategy with its seconds to those that fit, or to those that do not.
  Status simulate(SingleStrategy single, int64_t steps) {
    tell_(formatText("%d simulated, next is %s", found_.fitting.size(),
                     single.name()));
    auto seconds = runs_.simulate(single.request, steps);
    single.steps = steps;
    if (seconds.isOk()) {
      single.seconds = *seconds;
    } else if (doesNotFit(seconds.status())) {
      single.reason = seconds.status().message();
      single.seconds = never;
      found_.lacking.push_back(std::move(single));
      return Status::ok();
    } else {
      return seconds.status();
    }
    best_ = std::min(best_, single.seconds);
    found_.fitting.push_back(std::move(single));
    return Status::ok();
  }

  /// Returns the fastest strategy of each set of degrees, the fastest first.
  std::vector<SingleStrategy> fastest(size_t most) {
    std::sort(found_.fitting.begin(), found_.fitting.end(), isFaster);
    std::set<std::string> degrees;
    std::vector<SingleStrategy> all;
    for (const SingleStrategy &single : found_.fitting)
      if (all.size() < most &&
          degrees.insert(degreesOf(single.request.strategy)).second)
        all.push_back(single);
    return all;
  }

  /// Starts from each of the fastest and changes one choice at a time, as long
  /// as the result is faster.
  Status refine() {
    for (SingleStrategy start :
         fastest(space_.isExhaustive ? mostRefinedExhaustively
                                     : space_.mostRefined)) {
      if (start.seconds > limit(mostAboveRefined) * best_)
        break;
      for (bool isFaster = true; isFaster;) {
        isFaster = false;
        const SingleStrategy from = start;
        for (PlanRequest &request : neighbours(from)) {
          SingleStrategy next;
          next.request = std::move(request);
          next.beside = from.beside;
          next.layers = from.layers;
          next.layersForLengths = from.layersForLengths;
          if (known_.count(keyOf(next.request)) > 0)
            continue;
          DYNA_ASSIGN_OR_RETURN(bool isEstimated, estimate(next));
          if (!isEstimated)
            continue;
          // A mode that gains nothing leads to the same plan.
          const bool isSamePlan =
              next.request.recompute != from.request.recompute &&
              next.expected >= from.expected;
          // Estimates of one strategy's choices are wrong by about the same share.
          const bool isFar =
              space_.isExhaustive
                  ? next.expected > space_.exhaustiveLimit * best_
                  : isSamePlan ||
                        !(next.expected <= mostAbovePredicted * start.expected);
          if (isFar) {
            ++found_.skipped;
            continue;
          }
          DYNA_RETURN_IF_ERROR(screen(next));
          const SingleStrategy *last =
              found_.fitting.empty() ? nullptr : &found_.fitting.back();
          if (!last || keyOf(last->request) != keyOf(next.request))
            continue;
          if (last->seconds < start.seconds) {
            start = *last;
            isFaster = true;
          } else if (last->seconds == from.seconds) {
            found_.fitting.pop_back(); // another name of the same plan
          }
        }
      }
    }
    return Status::ok();
  }

  /// Requests with one other choice; some may be the request itself.
  std::vector<PlanRequest> neighbours(const SingleStrategy &single) const {
    const PlanRequest &from = single.request;
    std::vector<PlanRequest> all;
    auto add = [&](auto change) {
      all.push_back(from);
      change(all.back());
    };
    // Slices need micro-batches without padding.
    const bool isWhole = from.slices.empty() || from.slices == noSlices;
    if (space_.searchesKinds)
      for (const char *kind : {"", "padded", "tokens"})
        if (isWhole || std::string_view(kind) != "padded")
          add([&](PlanRequest &next) { next.microBatches = kind; });
    if (space_.searchesSizes)
      for (int64_t size : sizesBeside(from.tokensPerMicroBatch))
        add([&](PlanRequest &next) { next.tokensPerMicroBatch = size; });
    if (space_.searchesRecompute && space_.searchesChosenModes)
      add([](PlanRequest &next) {
        next.recompute = chooseRecomputeWord;
        next.strategy.recompute.reset();
      });
    for (std::vector<int> &cut : cutsBeside(single))
      add([&](PlanRequest &next) { next.strategy.layers = std::move(cut); });
    return all;
  }

  /// Returns neighbouring cuts: the best cut for the lengths, and moves of one
  /// layer. The layer moves between the first or the last stage and its
  /// neighbour, or between these two. They have layers beside blocks, and other
  /// memory.
  static std::vector<std::vector<int>>
  cutsBeside(const SingleStrategy &single) {
    const std::vector<int> &given = single.request.strategy.layers;
    const std::vector<int> &layers = given.empty() ? single.layers : given;
    std::vector<std::vector<int>> cuts;
    const int last = static_cast<int>(layers.size()) - 1;
    if (last < 1)
      return cuts;
    if (single.layersForLengths.size() == layers.size() &&
        single.layersForLengths != layers)
      cuts.push_back(single.layersForLengths);
    for (auto [from, to] : std::set<std::pair<int, int>>{{0, 1},
                                                         {1, 0},
                                                         {last, last - 1},
                                                         {last - 1, last},
                                                         {0, last},
                                                         {last, 0}})
      if (layers[from] > 1) {
        cuts.push_back(layers);
        --cuts.back()[from];
        ++cuts.back()[to];
      }
    return cuts;
  }

  /// Returns sizes in powers of two from the size with which a run begins.
  static std::vector<int64_t> sizesBeside(int64_t size) {
    if (size == 0)
      return {kUsualMicroBatch / 4, kUsualMicroBatch / 2, 2 * kUsualMicroBatch,
              4 * kUsualMicroBatch};
    std::vector<int64_t> sizes;
    for (int64_t other : {size / 2, size * 2})
      if (other >= 256 && other <= maxMicroBatchTokens)
        sizes.push_back(other);
    return sizes;
  }

  Status simulateFinalists() {
    std::vector<SingleStrategy> &all = found_.fitting;
    std::sort(all.begin(), all.end(), isFaster);
    size_t count = 0;
    while (count < std::min(all.size(), space_.mostFinal) &&
           all[count].seconds <= mostAboveFinal * all[0].seconds)
      ++count;
    if (space_.steps > space_.screenedSteps) {
      std::vector<SingleStrategy> finalists(
          all.begin(), all.begin() + static_cast<long>(count));
      all.erase(all.begin(), all.begin() + static_cast<long>(count));
      std::vector<SingleStrategy> others = std::move(all);
      all.clear();
      for (SingleStrategy &single : finalists)
        DYNA_RETURN_IF_ERROR(simulate(single, space_.steps));
      std::sort(all.begin(), all.end(), isFaster);
      all.insert(all.end(), others.begin(), others.end());
    }
    std::sort(found_.lacking.begin(), found_.lacking.end(),
              [](const auto &a, const auto &b) {
                return keyOf(a.request) < keyOf(b.request);
              });
    return Status::ok();
  }

  struct Modes {
    PlanRequest request;
    std::vector<int> layers, layersForLengths;
    double best = never, none = never, unlimited = 0, beside = 0;
  };
  const SingleSpace &space_;
  const SingleRuns &runs_;
  const std::function<void(const std::string &)> &tell_;
  std::map<std::string, Modes> modes_;
  std::vector<SingleStrategy> open_;
  std::vector<SingleStrategy> far_; ///< without estimates of steps
  std::set<std::string> known_;
  double best_ = never;
  FoundSingles found_;
};

} // namespace

std::string SingleStrategy::name() const {
  std::string text = describeStrategy(request.strategy);
  const std::string words =
      request.microBatches +
      (request.microBatches.empty() || request.pipeline.empty() ? "" : "+") +
      request.pipeline;
  if (!words.empty())
    text += " " + words;
  if (request.tokensPerMicroBatch > 0)
    text += formatText(" tokens=%d", request.tokensPerMicroBatch);
  if (!request.recompute.empty())
    text += " recompute=" + request.recompute;
  if (!request.slices.empty() && request.slices != noSlices)
    text += " slices=" + request.slices;
  return text;
}

std::string SingleStrategy::flags() const {
  std::string text = "--strategy " + describeStrategy(request.strategy);
  if (!request.recompute.empty())
    text += " --recompute " + request.recompute;
  if (request.tokensPerMicroBatch > 0)
    text +=
        formatText(" --tokens-per-micro-batch %d", request.tokensPerMicroBatch);
  if (!request.microBatches.empty())
    text += " --micro-batches " + request.microBatches;
  if (!request.pipeline.empty())
    text += " --pipeline " + request.pipeline;
  if (request.inFlight > 0)
    text += formatText(" --in-flight %d", request.inFlight);
  if (request.splitBackward)
    text += " --split-backward";
  // With one stage there are no slices without this flag, too.
  if (!request.slices.empty() &&
      (request.slices != noSlices || request.strategy.pp > 1))
    text += " --slices " + request.slices;
  return text;
}

std::string slicesOfSearch(const std::string &given) {
  return given.empty() ? noSlices : given;
}

int64_t screenedSteps(int64_t steps, int64_t tokensPerStep, bool slices) {
  const int64_t enoughTokens = slices ? 1 << 17 : 1 << 19;
  return std::clamp<int64_t>(enoughTokens / std::max<int64_t>(tokensPerStep, 1),
                             1, std::max<int64_t>(steps, 1));
}

StatusOr<FoundSingles>
searchSingles(const std::vector<AloneEstimate> &estimates,
              const SingleSpace &space, const SingleRuns &runs,
              const std::function<void(const std::string &)> &tell) {
  return Search(space, runs, tell).run(estimates);
}

} // namespace dyna
