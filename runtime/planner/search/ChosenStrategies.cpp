//===- ChosenStrategies.cpp - Describes found strategies ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/search/ChosenStrategies.h"

#include "runtime/base/text/JsonWriter.h"
#include "runtime/base/text/Text.h"
#include "runtime/planner/request/LengthRanges.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>

namespace dyna {
namespace {

std::string rangeText(const FoundRange &range) {
  LengthRange described;
  described.first = range.first;
  described.last = range.last;
  return describeLengths(described);
}

} // namespace

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
  request_ = played.request;
  if (!isAlone(played))
    return;
  single_ = *played.alone;
  request_ = single_->request;
  isOther_ = expectedRanges_ > 1 ||
             describeStrategy(candidates_.strategy(found_.best.home)) !=
                 describeStrategy(withMode(*single_));
  if (!isOther_)
    return;
  FoundStep alone;
  alone.ranges = {{0, 0, LengthRange().last}};
  alone.home = 0;
  alone.phases = single_->expected;
  found_.best = std::move(alone);
  nameRanges();
}

bool ChosenStrategies::isAlone(const Played &played) const {
  // Steps vary by more than this, and one strategy is simpler.
  constexpr double worthSwitching = 1.02;
  return played.alone &&
         (expectedRanges_ == 1 ||
          played.alone->seconds < worthSwitching * played.found);
}

void ChosenStrategies::nameRanges() {
  names_.clear();
  // Name strategies from the shortest range on, whatever the order of the step.
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

/// Returns the strategy in the form of estimates: with a mode and the layers of
/// its stages.
Strategy ChosenStrategies::withMode(const SingleStrategy &single) {
  Strategy strategy = single.request.strategy;
  if (!strategy.recompute && single.request.recompute.empty())
    strategy.recompute = plan::RECOMPUTE_NONE;
  if (strategy.layers.empty() && single.request.recompute.empty())
    strategy.layers = single.layers;
  return strategy;
}

std::string ChosenStrategies::moreFlags() const {
  SingleStrategy flags;
  flags.request = request_;
  flags.request.strategy = Strategy();
  for (const Strategy &strategy : chosen())
    flags.request.strategy.pp =
        std::max(flags.request.strategy.pp, strategy.pp);
  const std::string text = flags.flags();
  // Drop the flag of the strategy, which comes first.
  const size_t end = text.find(" --");
  return end == std::string::npos ? "" : text.substr(end);
}

std::vector<Strategy> ChosenStrategies::chosen() const {
  std::vector<Strategy> all;
  if (single_) {
    all.push_back(withMode(*single_));
    all.back().name = "a";
    return all;
  }
  for (const FoundRange &range : found_.best.ranges) {
    all.push_back(candidates_.strategy(range.candidate));
    all.back().name = nameOf(range.candidate);
    if (!request_.recompute.empty()) { // these replace the modes of strategies
      all.back().recompute.reset();
      all.back().layers.clear();
    }
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
  const std::vector<Strategy> strategies = chosen();
  for (size_t i = 0; i < found_.best.ranges.size(); ++i) {
    const FoundRange &range = found_.best.ranges[i];
    Strategy strategy = strategies[i];
    strategy.name.clear();
    const auto part = lengths_.between(range.first, range.last);
    text += formatText(
        "  %s  %-14s %6d samples %9d tokens  %8.3f s  %s%s\n",
        nameOf(range.candidate), rangeText(range),
        std::llround(part.probability *
                     static_cast<double>(part.lengths.load.segments)),
        std::llround(part.probability *
                     static_cast<double>(part.lengths.load.queries)),
        isOther_ ? single_->expected
                 : part.probability *
                       candidates_.phaseSeconds(range.candidate, graphs,
                                                part.lengths, part.longest),
        describeStrategy(strategy),
        range.candidate == found_.best.home ? "  (home)" : "");
  }
  return text;
}

std::string ChosenStrategies::singlesTable() const {
  if (found_.bestSingle.ranges.empty())
    return "no single strategy has room for the longest samples\n";
  // Once strategies were simulated, their estimates are not comparable.
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
    // Numberings of ranks that take the same time alone have one line.
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

std::string ChosenStrategies::table(bool withFlags) const {
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
         "\" --ranges \"" + ranges() + "\"" + (withFlags ? moreFlags() : "") +
         "\n";
}

/// Says how simulated steps compare with what estimates favour.
std::string ChosenStrategies::playedText() const {
  if (!played_ || (!std::isfinite(played_->found) && !played_->alone))
    return played_ ? "drawn steps were planned, and no order of one fits: give "
                     "the ranks more memory, or ask for fewer tokens a step\n"
                   : "";
  const std::string steps =
      formatText("%d drawn step%s, planned and played: ", played_->steps,
                 played_->steps == 1 ? "" : "s");
  if (!isOther_ && expectedRanges_ == 1)
    return steps + formatText("%.3f s\n", played_->alone->seconds);
  if (!isOther_)
    return steps + formatText("%.3f s, ", played_->found) +
           (played_->alone
                ? formatText("and the best single strategy %.3f: %s\n",
                             played_->alone->seconds, played_->alone->name())
                : std::string("and no single strategy has room\n"));
  return steps +
         formatText("this one %.3f s, and what estimates favour, with "
                    "%.3f s, ",
                    played_->alone->seconds, expected_) +
         (std::isfinite(played_->found)
              ? formatText("%.3f s: ", played_->found)
              : std::string("has no order that fits: ")) +
         expectedText_ + "\n";
}

std::string ChosenStrategies::json() const {
  JsonObject object;
  object.add("strategies", strategies())
      .add("ranges", ranges())
      .add("home", nameOf(found_.best.home))
      .add("seconds", jsonRounded(found_.best.seconds(), 6))
      .add("phase_seconds", jsonRounded(found_.best.phases, 6))
      .add("switch_seconds", jsonRounded(found_.best.switches, 6))
      .add("update_seconds", jsonRounded(found_.best.update, 6));
  if (!found_.bestSingle.ranges.empty())
    object
        .add("single",
             describeStrategy(candidates_.strategy(found_.bestSingle.home)))
        .add("single_seconds", jsonRounded(found_.bestSingle.seconds(), 6));
  if (played_ && std::isfinite(played_->found))
    object.add("played_seconds", jsonRounded(played_->found, 6));
  if (played_ && played_->alone)
    object.add("played_alone_seconds", jsonRounded(played_->alone->seconds, 6))
        .add("played_alone", played_->alone->name());
  if (std::string flags = moreFlags(); !flags.empty())
    object.add("flags", flags.substr(1));
  return object.add("considered", candidates_.considered())
             .add("kept", candidates_.candidates())
             .add("branches", found_.branches)
             .add("complete", found_.complete)
             .text() +
         "\n";
}

} // namespace dyna
