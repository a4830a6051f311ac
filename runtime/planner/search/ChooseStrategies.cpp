//===- ChooseStrategies.cpp - The strategies of a step, by lengths --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/ChooseStrategies.h"

#include "runtime/base/SayEvery.h"
#include "runtime/base/Text.h"
#include "runtime/planner/request/LengthRanges.h"
#include "runtime/planner/search/SizedSteps.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <tuple>

namespace dyna {
namespace {

std::string rangeText(const FoundRange &range) {
  LengthRange described;
  described.first = range.first;
  described.last = range.last;
  return describeLengths(described);
}

} // namespace

bool divides(int64_t tp, const DividedSizes &sizes) {
  return sizes.heads % tp == 0 && sizes.feedForward % tp == 0 &&
         (sizes.kvHeads == 0 || sizes.kvHeads % tp == 0 ||
          tp % sizes.kvHeads == 0);
}

std::string degreesToSearch(int64_t ranks, const DividedSizes &sizes) {
  std::string text;
  for (int64_t tp = 2; tp <= ranks; ++tp)
    for (const char *sp :
         isSearched(tp) && ranks % tp == 0 && divides(tp, sizes)
             ? std::vector<const char *>{"", ",sp=1"}
             : std::vector<const char *>())
      text += formatText("%stp%d%s: tp=%d%s", text.empty() ? "" : "; ", tp,
                         *sp ? "-sp" : "", tp, sp);
  return text;
}

std::vector<int64_t> degreesThatDoNotDivide(int64_t ranks,
                                            const DividedSizes &sizes) {
  std::vector<int64_t> degrees;
  for (int64_t tp = 2; tp <= ranks; ++tp)
    if (isSearched(tp) && ranks % tp == 0 && !divides(tp, sizes))
      degrees.push_back(tp);
  return degrees;
}

StatusOr<int> ranksToSearch(const Cluster &cluster, int64_t asked,
                            const char *flag) {
  const int64_t devices = cluster.devices();
  const int64_t perNode = cluster.description().devices_per_node();
  if (asked < 0 || asked > mostSearchedRanks)
    return Status::invalidArgument(formatText(
        "--ranks expects 1 to %d, but got %d", mostSearchedRanks, asked));
  if (asked == 0 && devices == 0)
    return Status::invalidArgument(
        std::string(flag) +
        " needs to know the devices: --cluster such as a100-40g:4x8, or "
        "`nodes` and `devices_per_node` in the cluster of "
        "--costs");
  if (devices > 0 && asked > devices)
    return Status::invalidArgument(formatText(
        "--ranks is %d, but the cluster has %d devices", asked, devices));
  if (perNode > 0 && asked > perNode && asked % perNode != 0)
    return Status::invalidArgument(
        formatText("--ranks is %d, which are no whole nodes of %d devices: "
                   "give a multiple of %d, or less",
                   asked, perNode, perNode));
  return static_cast<int>(asked > 0 ? asked : devices);
}

int64_t cutLengths(std::vector<int64_t> &lengths, int64_t positions) {
  int64_t cut = 0;
  for (int64_t &length : lengths)
    if (positions > 0 && length > positions) {
      length = positions;
      ++cut;
    }
  return cut;
}

ChosenStrategies::ChosenStrategies(StrategyCandidates candidates,
                                   FoundStrategies found,
                                   LengthDistribution lengths)
    : candidates_(std::move(candidates)), found_(std::move(found)),
      lengths_(std::move(lengths)), expected_(found_.best.seconds()),
      expectedRanges_(found_.best.ranges.size()) {
  nameRanges();
  expectedText_ = strategies();
}

void ChosenStrategies::take(const Played &played) {
  played_ = played;
  const bool isExpected =
      found_.best.ranges.size() == 1 && found_.best.home == played.candidate;
  if (!isAlone(played) || isExpected)
    return;
  FoundStep alone = found_.bestSingle;
  if (alone.ranges.empty() || alone.home != played.candidate) {
    alone = FoundStep();
    alone.ranges = {{played.candidate, 0, LengthRange().last}};
    alone.home = played.candidate;
    alone.update = candidates_.updateSeconds(played.candidate);
    alone.phases = found_.singles[played.candidate] - alone.update;
  }
  isOther_ = true;
  found_.best = std::move(alone);
  nameRanges();
}

bool ChosenStrategies::isAlone(const Played &played) const {
  // Steps differ by more than that, and one strategy is simpler.
  constexpr double worthSwitching = 1.02;
  if (played.candidate < 0)
    return false;
  return expectedRanges_ > 1 ? played.alone < worthSwitching * played.found
                             : played.alone <= played.found;
}

void ChosenStrategies::nameRanges() {
  names_.clear();
  // Names from the shortest on, whatever the order of the step.
  std::vector<FoundRange> byLength = found_.best.ranges;
  std::sort(byLength.begin(), byLength.end(),
            [](const auto &a, const auto &b) { return a.first < b.first; });
  for (size_t i = 0; i < byLength.size(); ++i)
    names_.emplace_back(byLength[i].candidate,
                        std::string(1, static_cast<char>('a' + i)));
}

std::string ChosenStrategies::nameOf(int candidate) const {
  for (const auto &[known, name] : names_)
    if (known == candidate)
      return name;
  return "";
}

std::vector<int> ChosenStrategies::homeFirst() const {
  std::vector<int> all = {found_.best.home};
  for (const FoundRange &range : found_.best.ranges)
    if (range.candidate != found_.best.home)
      all.push_back(range.candidate);
  return all;
}

std::vector<Strategy> ChosenStrategies::chosen() const {
  std::vector<Strategy> all;
  for (const FoundRange &range : found_.best.ranges) {
    all.push_back(candidates_.strategy(range.candidate));
    all.back().name = nameOf(range.candidate);
  }
  return all;
}

std::string ChosenStrategies::strategies() const {
  std::string all;
  for (const Strategy &strategy : chosen())
    all += (all.empty() ? "" : "; ") + describeStrategy(strategy);
  return all;
}

std::string ChosenStrategies::ranges() const {
  std::string all;
  for (const FoundRange &range : found_.best.ranges)
    all += (all.empty() ? "" : "; ") + nameOf(range.candidate) + ": " +
           rangeText(range);
  if (found_.best.ranges.size() > 1)
    all += "; home=" + nameOf(found_.best.home);
  return all;
}

std::string ChosenStrategies::rangesTable() const {
  std::string text = "ranges in the order of the step\n";
  const std::vector<int> graphs = homeFirst();
  for (const FoundRange &range : found_.best.ranges) {
    const auto part = lengths_.between(range.first, range.last);
    text += formatText(
        "  %s  %-14s %6d samples %9d tokens  %8.3f s  %s%s\n",
        nameOf(range.candidate), rangeText(range),
        std::llround(part.probability *
                     static_cast<double>(part.lengths.load.segments)),
        std::llround(part.probability *
                     static_cast<double>(part.lengths.load.queries)),
        part.probability * candidates_.phaseSeconds(range.candidate, graphs,
                                                    part.lengths, part.longest),
        describeStrategy(candidates_.strategy(range.candidate)),
        range.candidate == found_.best.home ? "  (home)" : "");
  }
  return text;
}

std::string ChosenStrategies::singlesTable() const {
  if (found_.bestSingle.ranges.empty())
    return "no single strategy has room for the longest samples\n";
  // Once they were played, estimates are no comparison.
  std::string text = formatText(
      "best single strategy by estimates %.3f s: %s%s\n",
      found_.bestSingle.seconds(),
      describeStrategy(candidates_.strategy(found_.bestSingle.home)),
      played_
          ? std::string()
          : formatText("; the step is %.2f times as fast",
                       found_.bestSingle.seconds() / found_.best.seconds()));
  std::vector<int> order(found_.singles.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::pair(found_.singles[a], a) < std::pair(found_.singles[b], b);
  });
  text += "\nstrategies of the search, alone\n";
  std::set<std::pair<int, double>> said;
  for (int c : order) {
    // Numberings that take the same alone are one line, the first's.
    if (!said.insert({candidates_.family(c), found_.singles[c]}).second)
      continue;
    text += formatText(
        "  %s  %s%s\n",
        std::isfinite(found_.singles[c])
            ? formatText("%8.3f s", found_.singles[c])
            : std::string("   no room"),
        describeStrategy(candidates_.strategy(c)),
        std::isfinite(found_.singles[c])
            ? std::string()
            : formatText(": in the memory of a rank samples have at most %d "
                         "tokens",
                         candidates_.mostTokens(c, {c})));
  }
  return text;
}

std::string ChosenStrategies::table() const {
  return formatText(
             "%d strategies on %d ranks; %d kept for the search, which looked "
             "at %d branches, %d of them to the end%s\n\n",
             candidates_.considered(), candidates_.graph(0).ranks(),
             candidates_.candidates(), found_.branches, found_.complete,
             found_.isCut ? ", and left others out" : "") +
         rangesTable() +
         formatText(
             "expected step %.3f s: phases %.3f, switches %.3f, update %.3f\n",
             found_.best.seconds(), found_.best.phases, found_.best.switches,
             found_.best.update) +
         playedText() + singlesTable() + "\n--strategies \"" + strategies() +
         "\" --ranges \"" + ranges() + "\"\n";
}

/// What estimates are worth.
std::string ChosenStrategies::playedText() const {
  if (!played_ || (!std::isfinite(played_->found) && played_->candidate < 0))
    return played_ ? "drawn steps were planned, and no order of one fits: give "
                     "the ranks more memory, or ask for fewer tokens a step\n"
                   : "";
  const std::string steps =
      formatText("%d drawn step%s, planned and played: ", played_->steps,
                 played_->steps == 1 ? "" : "s");
  const bool isSet = expectedRanges_ > 1;
  if (!isOther_) {
    if (!isSet)
      return steps + formatText("%.3f s\n", played_->found);
    return steps + formatText("%.3f s, ", played_->found) +
           (played_->candidate < 0
                ? std::string("and no single strategy has room\n")
                : formatText("and the best single strategy %.3f: %s\n",
                             played_->alone,
                             describeStrategy(
                                 candidates_.strategy(played_->candidate))));
  }
  return steps +
         formatText("this one %.3f s, and what estimates favour, with "
                    "%.3f s, ",
                    played_->alone, expected_) +
         (std::isfinite(played_->found)
              ? formatText("%.3f s: ", played_->found)
              : std::string("has no order that fits: ")) +
         expectedText_ + "\n";
}

std::string ChosenStrategies::json() const {
  std::string text = formatText(
      "{\"strategies\": \"%s\", \"ranges\": \"%s\", \"home\": \"%s\", "
      "\"seconds\": %.6g, \"phase_seconds\": %.6g, \"switch_seconds\": "
      "%.6g, \"update_seconds\": %.6g, ",
      strategies(), ranges(), nameOf(found_.best.home), found_.best.seconds(),
      found_.best.phases, found_.best.switches, found_.best.update);
  if (!found_.bestSingle.ranges.empty())
    text += formatText(
        "\"single\": \"%s\", \"single_seconds\": %.6g, ",
        describeStrategy(candidates_.strategy(found_.bestSingle.home)),
        found_.bestSingle.seconds());
  if (played_ && std::isfinite(played_->found))
    text += formatText("\"played_seconds\": %.6g, ", played_->found);
  if (played_ && played_->candidate >= 0)
    text += formatText("\"played_alone_seconds\": %.6g, ", played_->alone);
  return text + formatText("\"considered\": %d, \"kept\": %d, \"branches\": "
                           "%d, \"complete\": %d}\n",
                           candidates_.considered(), candidates_.candidates(),
                           found_.branches, found_.complete);
}

static LengthDistribution distributionOf(std::vector<int64_t> lengths,
                                         int64_t tokensPerStep) {
  double tokens = 0;
  for (int64_t length : lengths)
    tokens += static_cast<double>(length);
  const double samples = static_cast<double>(tokensPerStep) *
                         static_cast<double>(lengths.size()) / tokens;
  return LengthDistribution(std::move(lengths), samples);
}

StatusOr<std::vector<AloneEstimate>>
estimateSingles(const CostModel &costs, const StrategySpace &space,
                std::vector<int64_t> lengths) {
  const LengthDistribution distribution =
      distributionOf(std::move(lengths), space.tokensPerStep);
  DYNA_ASSIGN_OR_RETURN(auto candidates,
                        StrategyCandidates::create(costs, space, distribution));
  return candidates.alone();
}

/// Of lengths as they are to count.
static StatusOr<ChosenStrategies> search(const CostModel &costs,
                                         const StrategySpace &space,
                                         std::vector<int64_t> lengths,
                                         int mostRanges, int64_t &held) {
  LengthDistribution distribution =
      distributionOf(std::move(lengths), space.tokensPerStep);
  DYNA_ASSIGN_OR_RETURN(auto candidates,
                        StrategyCandidates::create(costs, space, distribution));
  StrategySearch search;
  search.ends = usualEnds(distribution.longest());
  search.mostRanges = std::min(search.mostRanges, mostRanges);
  auto found = searchStrategies(candidates, distribution, search);
  if (found.status().code() == StatusCode::ResourceExhausted) {
    held = candidates.longestHeld();
    return candidates.lackOfRoom();
  }
  DYNA_RETURN_IF_ERROR(found.status());
  return ChosenStrategies(std::move(candidates), *std::move(found),
                          std::move(distribution));
}

/// As a run with the memory of a device makes it.
static StatusOr<std::unique_ptr<SizedSteps>>
sizeSteps(const CostModel &costs, const StrategySpace &space,
          const std::string &strategies, const std::string &ranges,
          int64_t longest) {
  SizedSteps::Asked asked;
  DYNA_ASSIGN_OR_RETURN(asked.strategies, parseStrategies(strategies));
  std::vector<std::string> names, notes;
  for (const Strategy &strategy : asked.strategies)
    names.push_back(strategy.name);
  DYNA_ASSIGN_OR_RETURN(asked.ranges, parseLengthRanges(ranges, names));
  asked.request.tokensPerBatch = space.tokensPerStep;
  asked.memoryBytes = space.memoryBytes;
  asked.longest = longest;
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

/// Those that are played alone: the best by estimates, no two of one family, each of
/// a set among them.
static std::vector<int> singlesToPlay(const ChosenStrategies &chosen,
                                      int64_t tokensPerStep) {
  // Estimates are up to twice off; of large steps each takes seconds.
  constexpr double farOff = 2;
  constexpr int64_t largeStep = 1 << 19;
  const size_t mostPlayed = tokensPerStep > largeStep ? 3 : 5;
  const std::vector<double> &expected = chosen.found().singles;
  std::vector<int> all;
  for (int c = 0; c < static_cast<int>(expected.size()); ++c)
    if (std::isfinite(expected[c]))
      all.push_back(c);
  std::set<int> ofSet;
  for (const FoundRange &range : chosen.found().best.ranges)
    ofSet.insert(range.candidate);
  std::sort(all.begin(), all.end(), [&](int a, int b) {
    return std::tuple(ofSet.count(a) == 0, expected[a], a) <
           std::tuple(ofSet.count(b) == 0, expected[b], b);
  });
  std::set<int> families;
  std::vector<int> played;
  const double best = chosen.found().bestSingle.ranges.empty()
                          ? std::numeric_limits<double>::infinity()
                          : chosen.found().bestSingle.seconds();
  for (int c : all) {
    const bool isOfSet = ofSet.count(c) > 0;
    if (!isOfSet && (expected[c] > farOff * best ||
                     played.size() >= mostPlayed + ofSet.size() - 1))
      continue;
    if (families.insert(chosen.candidates().family(c)).second)
      played.push_back(c);
  }
  return played;
}

/// What was found (null: a single strategy), beside single ones.
static StatusOr<ChosenStrategies::Played>
playFound(const CostModel &costs, const StrategySpace &space,
          const ChosenStrategies &chosen, const SizedSteps *set,
          std::vector<int64_t> lengths) {
  constexpr double never = std::numeric_limits<double>::infinity();
  ChosenStrategies::Played played;
  // No plan has longer ones.
  cutLengths(lengths, costs.model().manifest().facts().positions());
  const auto steps = drawSteps(std::move(lengths), space.tokensPerStep);
  played.steps = static_cast<int64_t>(steps.size());
  played.found = never;
  auto tell = [&](const std::string &what) {
    space.tell(formatText("%d drawn step%s planned and played: %s",
                          played.steps, played.steps == 1 ? " is" : "s are",
                          what));
  };
  if (set) {
    tell(chosen.strategies());
    DYNA_ASSIGN_OR_RETURN(played.found, playOrLack(*set, steps));
  }
  played.alone = never;
  for (int candidate : singlesToPlay(chosen, space.tokensPerStep)) {
    Strategy strategy = chosen.candidates().strategy(candidate);
    tell(describeStrategy(strategy));
    strategy.name = "a";
    DYNA_ASSIGN_OR_RETURN(auto alone,
                          sizeSteps(costs, space, describeStrategy(strategy),
                                    "a: 0-", chosen.longest()));
    if (alone->lackingBytes() > 0)
      continue;
    DYNA_ASSIGN_OR_RETURN(double seconds, playOrLack(*alone, steps));
    if (!set && candidate == chosen.found().best.home)
      played.found = seconds;
    if (seconds < played.alone) {
      played.alone = seconds;
      played.candidate = candidate;
    }
  }
  return played;
}

StatusOr<ChosenStrategies> chooseStrategies(const CostModel &costs,
                                            const StrategySpace &space,
                                            std::vector<int64_t> lengths) {
  // Each takes the switches of what was found a little further from the edge.
  constexpr int mostTries = 4;
  StrategySpace within = space;
  SayEvery pause(space.tellEvery);
  within.tell = [&](const std::string &next) {
    if (space.tell && pause.isDue())
      space.tell(next);
  };
  for (int attempt = 0;; ++attempt) {
    const int mostRanges =
        attempt < mostTries ? StrategySearch().mostRanges : 1;
    int64_t held = 0;
    within.tell("strategies and ranges are searched");
    auto chosen = search(costs, within, lengths, mostRanges, held);
    if (!chosen.isOk() && space.shortens && held > 0) {
      cutLengths(lengths, held);
      chosen = search(costs, within, lengths, mostRanges, held);
    }
    DYNA_RETURN_IF_ERROR(chosen.status());
    const bool isSet = chosen->found().best.ranges.size() > 1;
    if (!space.plays && (!isSet || within.memoryBytes == 0))
      return chosen;
    std::unique_ptr<SizedSteps> set;
    if (isSet) {
      DYNA_ASSIGN_OR_RETURN(set,
                            sizeSteps(costs, within, chosen->strategies(),
                                      chosen->ranges(), chosen->longest()));
      within.passedBytes += set->lackingBytes();
      if (set->lackingBytes() > 0)
        continue;
    }
    if (!space.plays)
      return chosen;
    DYNA_ASSIGN_OR_RETURN(
        auto played, playFound(costs, within, *chosen, set.get(), lengths));
    chosen->take(played);
    return chosen;
  }
}

} // namespace dyna
