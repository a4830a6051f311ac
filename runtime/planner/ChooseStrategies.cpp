//===- ChooseStrategies.cpp - The strategies of a step, by lengths --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/ChooseStrategies.h"

#include "runtime/base/Text.h"
#include "runtime/planner/LengthRanges.h"
#include "runtime/planner/StepRegions.h"

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

std::string degreesToSearch(int64_t ranks, const DividedSizes &sizes) {
  auto divides = [&](int64_t tp) {
    return ranks % tp == 0 && sizes.heads % tp == 0 &&
           sizes.feedForward % tp == 0 &&
           (sizes.kvHeads == 0 || sizes.kvHeads % tp == 0 ||
            tp % sizes.kvHeads == 0);
  };
  std::string text;
  for (int64_t tp = 2; tp <= ranks && divides(tp); tp *= 2)
    for (const char *sp : {"", ",sp=1"})
      text += formatText("%stp%d%s: tp=%d%s", text.empty() ? "" : "; ", tp,
                         *sp ? "-sp" : "", tp, sp);
  return text;
}

StatusOr<int> ranksToSearch(const Cluster &cluster, int64_t asked) {
  const int64_t devices = cluster.devices();
  const int64_t perNode = cluster.description().devices_per_node();
  if (asked < 0 || asked > mostSearchedRanks)
    return Status::invalidArgument(formatText(
        "--ranks expects 1 to %d, but got %d", mostSearchedRanks, asked));
  if (asked == 0 && devices == 0)
    return Status::invalidArgument(
        "--strategies search needs to know the devices: --cluster such as "
        "a100-40g:4x8");
  if (devices > 0 && asked > devices)
    return Status::invalidArgument(formatText(
        "--ranks is %d, but the cluster has %d devices", asked, devices));
  if (perNode > 0 && asked > perNode && asked % perNode != 0)
    return Status::invalidArgument(
        formatText("--ranks is %d, which are no whole nodes of %d devices",
                   asked, perNode));
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
      lengths_(std::move(lengths)) {
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

std::string ChosenStrategies::strategies() const {
  std::string all;
  for (const FoundRange &range : found_.best.ranges) {
    Strategy strategy = candidates_.strategy(range.candidate);
    strategy.name = nameOf(range.candidate);
    all += (all.empty() ? "" : "; ") + describeStrategy(strategy);
  }
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
    text += formatText("  %s  %-14s %6d samples %9d tokens  %8.3f s  %s%s\n",
                       nameOf(range.candidate), rangeText(range),
                       std::llround(part.probability *
                                    static_cast<double>(part.load.sum.samples)),
                       std::llround(part.probability *
                                    static_cast<double>(part.load.sum.tokens)),
                       part.probability *
                           candidates_.phaseSeconds(range.candidate, graphs,
                                                    part.load, part.longest),
                       describeStrategy(candidates_.strategy(range.candidate)),
                       range.candidate == found_.best.home ? "  (home)" : "");
  }
  return text;
}

std::string ChosenStrategies::singlesTable() const {
  if (found_.bestSingle.ranges.empty())
    return "no single strategy has room for the longest samples\n";
  std::string text = formatText(
      "best single strategy %.3f s: %s; the step is %.2f times as fast\n",
      found_.bestSingle.seconds(),
      describeStrategy(candidates_.strategy(found_.bestSingle.home)),
      found_.bestSingle.seconds() / found_.best.seconds());
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
             "at %d branches and %d complete answers\n\n",
             candidates_.considered(), candidates_.graph(0).ranks(),
             candidates_.candidates(), found_.branches, found_.complete) +
         rangesTable() +
         formatText(
             "expected step %.3f s: phases %.3f, switches %.3f, update %.3f\n",
             found_.best.seconds(), found_.best.phases, found_.best.switches,
             found_.best.update) +
         singlesTable() + "\n--strategies \"" + strategies() +
         "\" --ranges \"" + ranges() + "\"\n";
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
  return text + formatText("\"considered\": %d, \"kept\": %d, \"branches\": "
                           "%d, \"complete\": %d}\n",
                           candidates_.considered(), candidates_.candidates(),
                           found_.branches, found_.complete);
}

/// Of lengths as they are to count.
static StatusOr<ChosenStrategies> search(const CostModel &costs,
                                         const StrategySpace &space,
                                         std::vector<int64_t> lengths,
                                         int mostRanges, int64_t &held) {
  double tokens = 0;
  for (int64_t length : lengths)
    tokens += static_cast<double>(length);
  const double samples = static_cast<double>(space.tokensPerStep) *
                         static_cast<double>(lengths.size()) / tokens;
  LengthDistribution distribution(std::move(lengths), samples);
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

/// Bytes that some rank of a run lacks for what was found, as it shares out memory.
static StatusOr<int64_t> lackingBytes(const CostModel &costs,
                                      const StrategySpace &space,
                                      const ChosenStrategies &chosen) {
  if (space.memoryBytes == 0 || chosen.found().best.ranges.size() < 2)
    return 0;
  DYNA_ASSIGN_OR_RETURN(auto strategies, parseStrategies(chosen.strategies()));
  std::vector<std::string> names, notes;
  std::vector<PlannedGraph> graphs;
  PlanRequest request;
  request.tokensPerBatch = space.tokensPerStep;
  for (const Strategy &strategy : strategies) {
    names.push_back(strategy.name);
    request.strategy = strategy;
    DYNA_ASSIGN_OR_RETURN(PlannedGraph graph, planGraph(costs, request, notes));
    graphs.push_back(std::move(graph));
  }
  DYNA_ASSIGN_OR_RETURN(LengthRanges ranges,
                        parseLengthRanges(chosen.ranges(), names));
  std::vector<PlannedGraph *> all;
  for (PlannedGraph &graph : graphs)
    all.push_back(&graph);
  DYNA_ASSIGN_OR_RETURN(Orchestration orchestration,
                        orchestrateRanges(ranges, {all.begin(), all.end()}));
  const StepGraphs step(all, orchestration.home(), &orchestration);
  for (PlannedGraph *graph : all) {
    request.strategy = graph->graph->strategy();
    DYNA_RETURN_IF_ERROR(limitMicroBatches(step, *graph, request,
                                           /*training=*/true, space.memoryBytes,
                                           notes));
  }
  DYNA_RETURN_IF_ERROR(setLongestSample(step, ranges, chosen.longest()));
  DYNA_ASSIGN_OR_RETURN(StepRegions regions,
                        sizeStepRegions(step, space.tokensPerStep,
                                        /*training=*/true, space.memoryBytes,
                                        /*atLeast=*/true));
  int64_t lacking = 0;
  for (size_t rank = 0; rank < regions.bytes.size(); ++rank)
    lacking = std::max(
        lacking,
        step.homeBytes(static_cast<int>(rank), true) + regions.bytes[rank] -
            (space.memoryBytes - space.memoryBytes % plan::placeAlignment));
  return lacking;
}

StatusOr<ChosenStrategies> chooseStrategies(const CostModel &costs,
                                            const StrategySpace &space,
                                            std::vector<int64_t> lengths) {
  // Each takes the switches of what was found a little further from the edge.
  constexpr int mostTries = 4;
  StrategySpace within = space;
  for (int attempt = 0;; ++attempt) {
    const int mostRanges =
        attempt < mostTries ? StrategySearch().mostRanges : 1;
    int64_t held = 0;
    auto chosen = search(costs, within, lengths, mostRanges, held);
    if (!chosen.isOk() && space.shortens && held > 0) {
      cutLengths(lengths, held);
      chosen = search(costs, within, lengths, mostRanges, held);
    }
    DYNA_RETURN_IF_ERROR(chosen.status());
    DYNA_ASSIGN_OR_RETURN(int64_t lacking,
                          lackingBytes(costs, within, *chosen));
    if (lacking <= 0)
      return chosen;
    within.passedBytes += lacking;
  }
}

} // namespace dyna
