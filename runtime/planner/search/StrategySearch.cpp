//===- StrategySearch.cpp - Searches strategies and ranges ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/StrategySearch.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace dyna {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
/// Beyond that, a range that has samples in a step.
constexpr double certain = 1 - 1e-9;

} // namespace

LengthDistribution::LengthDistribution(std::vector<int64_t> lengths,
                                       double samplesPerStep)
    : lengths_(std::move(lengths)), tokens_(1, 0), squares_(1, 0),
      samplesPerStep_(samplesPerStep) {
  std::sort(lengths_.begin(), lengths_.end());
  for (int64_t length : lengths_) {
    const auto tokens = static_cast<double>(length);
    tokens_.push_back(tokens_.back() + tokens);
    squares_.push_back(squares_.back() + tokens * tokens);
  }
}

LengthDistribution::Part LengthDistribution::between(int64_t first,
                                                     int64_t last) const {
  const size_t begin =
      std::lower_bound(lengths_.begin(), lengths_.end(), first) -
      lengths_.begin();
  const size_t end = std::upper_bound(lengths_.begin(), lengths_.end(), last) -
                     lengths_.begin();
  Part part;
  if (begin >= end)
    return part;
  const auto count = static_cast<double>(end - begin);
  const double expected =
      samplesPerStep_ * count / static_cast<double>(lengths_.size());
  // With many independent samples their number in a range has a Poisson
  // distribution.
  part.probability = 1 - std::exp(-expected);
  if (part.probability > certain)
    part.probability = 1;
  const double there = std::max(1.0, expected / part.probability);
  const double scale = there / count;
  // Runs make room for the longest sample that a range allows.
  part.longest = std::min(last, lengths_.back());
  Load &load = part.lengths.load;
  load.segments = std::llround(there);
  load.queries = load.keys =
      std::llround(scale * (tokens_[end] - tokens_[begin]));
  load.pairs = std::llround(scale * (squares_[end] - squares_[begin]));
  load.causalPairs = (load.pairs + load.queries) / 2;
  for (size_t at = begin; at < end;) {
    const int c = PhaseLengths::classOf(lengths_[at]);
    const auto last = lengths_.begin() + static_cast<long>(end);
    const size_t next =
        (c + 1 < PhaseLengths::kClasses
             ? std::lower_bound(lengths_.begin() + static_cast<long>(at), last,
                                INT64_C(1) << (c + 1))
             : last) -
        lengths_.begin();
    part.lengths.tokensOf[c] +=
        std::llround(scale * (tokens_[next] - tokens_[at]));
    at = next;
  }
  // The longest of n samples is expected at the quantile n / (n + 1).
  part.lengths.longest =
      lengths_[begin +
               std::min(end - begin - 1,
                        static_cast<size_t>(count * there / (there + 1)))];
  return part;
}

std::vector<int64_t> usualEnds(int64_t longest) {
  std::vector<int64_t> ends;
  for (int64_t power = 64; power < longest; power *= 2)
    for (int64_t end : {power, power + power / 2})
      if (end < longest)
        ends.push_back(end);
  return ends;
}

double bestOrder(const StepCosts &costs, int home,
                 const std::vector<int> &candidates,
                 const std::vector<double> &probabilities,
                 std::vector<int> &order) {
  std::vector<int> guests;
  double always = 0;
  int homePlace = -1;
  for (int place = 0; place < static_cast<int>(candidates.size()); ++place)
    if (candidates[place] == home) {
      homePlace = place;
      always += probabilities[place] *
                costs.switchSeconds(SwitchKind::First, home, home);
    } else {
      guests.push_back(place);
      always +=
          probabilities[place] *
          costs.switchSeconds(SwitchKind::Gradients, candidates[place], home);
    }
  const int count = static_cast<int>(guests.size());
  double best = never;
  do {
    double seconds = always;
    for (int present = 1; present < 1 << count && seconds < best; ++present) {
      double probability = 1, values = 0;
      int before = -1;
      for (int i = 0; i < count; ++i) {
        const bool isThere = present >> i & 1;
        const double share = probabilities[guests[i]];
        probability *= isThere ? share : 1 - share;
        if (!isThere || probability == 0)
          continue;
        const int now = candidates[guests[i]];
        double least = costs.switchSeconds(SwitchKind::First, home, now);
        if (before >= 0)
          least = std::min(least,
                           costs.switchSeconds(SwitchKind::Next, before, now));
        values += least;
        before = now;
      }
      if (probability > 0)
        seconds += probability * values;
    }
    if (seconds < best) {
      best = seconds;
      order = guests;
    }
  } while (std::next_permutation(guests.begin(), guests.end()));
  if (best < never && homePlace >= 0)
    order.push_back(homePlace);
  return best;
}

namespace {

class Search {
public:
  Search(const StepCosts &costs, const LengthDistribution &lengths,
         const StrategySearch &search)
      : costs_(costs), search_(search), count_(costs.candidates()) {
    int64_t first = 0;
    firsts_.push_back(first);
    for (int64_t end : search.ends)
      firsts_.push_back(end + 1);
    bounds_ = static_cast<int>(firsts_.size());
    for (int i = 0; i < bounds_; ++i)
      for (int j = i + 1; j <= bounds_; ++j)
        parts_.push_back(lengths.between(firsts_[i], lastOf(j)));
  }

  StatusOr<FoundStrategies> run() {
    found_.singles.assign(count_, never);
    std::vector<std::pair<double, int>> homes;
    for (int home = 0; home < count_; ++home) {
      const double update = costs_.updateSeconds(home);
      const double seconds =
          update + phase(home, home, 0, bounds_) +
          switchesOf(home, {home}, {partOf(0, bounds_).probability});
      found_.singles[home] = seconds;
      if (seconds < never &&
          (found_.bestSingle.home < 0 || seconds < found_.bestSingle.seconds()))
        found_.bestSingle = {{{home, 0, lastOf(bounds_)}},
                             home,
                             phase(home, home, 0, bounds_),
                             seconds - update - phase(home, home, 0, bounds_),
                             update};
      homes.emplace_back(seconds, home);
    }
    found_.best = found_.bestSingle;
    best_ = found_.best.home < 0 ? never : found_.best.seconds();
    // Begin with the most promising home, so that bounds are tight soon.
    std::sort(homes.begin(), homes.end());
    for (auto [seconds, home] : homes)
      searchFrom(home);
    if (found_.best.home < 0)
      return Status::resourceExhausted(
          "no strategy that was tried has room for the longest samples beside "
          "parameters and their state");
    return std::move(found_);
  }

private:
  int64_t lastOf(int bound) const {
    return bound == bounds_ ? std::numeric_limits<int64_t>::max()
                            : firsts_[bound] - 1;
  }

  /// Returns the samples with lengths from bound i to bound j.
  const LengthDistribution::Part &partOf(int i, int j) const {
    // Row i has bounds_ - i entries.
    return parts_[static_cast<size_t>(i) * bounds_ - i * (i - 1) / 2 + j - i -
                  1];
  }

  /// Returns the seconds beside the graphs of a run, home first.
  double phase(int candidate, const std::vector<int> &graphs, int i,
               int j) const {
    const LengthDistribution::Part &part = partOf(i, j);
    return part.probability == 0
               ? 0
               : part.probability * costs_.phaseSeconds(candidate, graphs,
                                                        part.lengths,
                                                        part.longest);
  }
  /// Returns the seconds with as few graphs as possible: no run is faster.
  double phase(int candidate, int home, int i, int j) const {
    return candidate == home
               ? phase(candidate, std::vector<int>{home}, i, j)
               : phase(candidate, std::vector<int>{home, candidate}, i, j);
  }

  double switchesOf(int home, const std::vector<int> &candidates,
                    const std::vector<double> &probabilities) {
    std::vector<int> order;
    return bestOrder(costs_, home, candidates, probabilities, order);
  }

  /// Returns the least seconds to enter and leave a candidate.
  double leastSwitch(int candidate, int home) const {
    double enter = costs_.switchSeconds(SwitchKind::First, home, candidate);
    if (candidate == home)
      return enter;
    for (int other = 0; other < count_; ++other)
      if (costs_.family(other) != costs_.family(candidate))
        enter = std::min(
            enter, costs_.switchSeconds(SwitchKind::Next, other, candidate));
    return enter + costs_.switchSeconds(SwitchKind::Gradients, candidate, home);
  }

  double &weightOf(int candidate, int i, int j) {
    return weights_[(static_cast<size_t>(candidate) * (bounds_ + 1) + i) *
                        (bounds_ + 1) +
                    j];
  }

  void searchFrom(int home) {
    home_ = home;
    const double update = costs_.updateSeconds(home);
    // The weight is the time of a phase and the least time of its switches.
    weights_.assign(static_cast<size_t>(count_) * (bounds_ + 1) * (bounds_ + 1),
                    never);
    rest_.assign(bounds_ + 1, never);
    rest_[bounds_] = 0;
    for (int i = bounds_ - 1; i >= 0; --i)
      for (int c = 0; c < count_; ++c) {
        const double least = leastSwitch(c, home);
        for (int j = i + 1; j <= bounds_; ++j) {
          double &weight = weightOf(c, i, j);
          weight = phase(c, home, i, j) + partOf(i, j).probability * least;
          rest_[i] = std::min(rest_[i], weight + rest_[j]);
        }
      }
    chosen_.clear();
    ends_.clear();
    extend(0, update);
  }

  bool isUsed(int candidate) const {
    return std::any_of(chosen_.begin(), chosen_.end(), [&](int other) {
      return costs_.family(other) == costs_.family(candidate);
    });
  }

  void extend(int begin, double seconds) {
    const bool hasHome =
        std::find(chosen_.begin(), chosen_.end(), home_) != chosen_.end();
    const int left = search_.mostRanges - static_cast<int>(chosen_.size());
    for (int c = 0; c < count_; ++c) {
      if (isUsed(c) || (left == 1 && !hasHome && c != home_))
        continue;
      for (int end = left == 1 ? bounds_ : begin + 1; end <= bounds_; ++end) {
        // Skip a range without samples.
        if (partOf(begin, end).probability == 0 && end < bounds_)
          continue;
        if (found_.branches >= search_.mostBranches) {
          found_.isCut = true;
          return;
        }
        ++found_.branches;
        const double now = seconds + weightOf(c, begin, end);
        if (now + rest_[end] >= best_)
          continue;
        chosen_.push_back(c);
        ends_.push_back(end);
        if (end < bounds_)
          extend(end, now);
        else if (hasHome || c == home_)
          finish();
        chosen_.pop_back();
        ends_.pop_back();
      }
    }
  }

  void finish() {
    ++found_.complete;
    FoundStep step;
    step.home = home_;
    step.update = costs_.updateSeconds(home_);
    std::vector<int> graphs = {home_};
    for (int c : chosen_)
      if (c != home_)
        graphs.push_back(c);
    std::vector<double> probabilities;
    std::vector<FoundRange> ranges;
    int begin = 0;
    for (size_t i = 0; i < chosen_.size(); ++i) {
      step.phases += phase(chosen_[i], graphs, begin, ends_[i]);
      probabilities.push_back(partOf(begin, ends_[i]).probability);
      ranges.push_back({chosen_[i], firsts_[begin], lastOf(ends_[i])});
      begin = ends_[i];
    }
    if (step.phases + step.update >= best_)
      return;
    std::vector<int> order;
    step.switches = bestOrder(costs_, home_, chosen_, probabilities, order);
    if (step.seconds() >= best_)
      return;
    best_ = step.seconds();
    for (int place : order)
      step.ranges.push_back(ranges[place]);
    found_.best = std::move(step);
  }

  const StepCosts &costs_;
  const StrategySearch &search_;
  const int count_;
  int bounds_ = 0;
  std::vector<int64_t> firsts_;
  std::vector<LengthDistribution::Part> parts_;
  FoundStrategies found_;
  double best_ = never;
  // State of the search for one home.
  int home_ = 0;
  std::vector<double> weights_, rest_;
  std::vector<int> chosen_, ends_;
};

} // namespace

StatusOr<FoundStrategies> searchStrategies(const StepCosts &costs,
                                           const LengthDistribution &lengths,
                                           const StrategySearch &search) {
  return Search(costs, lengths, search).run();
}

} // namespace dyna
