//===- SearchSets.cpp - The best strategies of a step ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "tools/dyna-plan/SearchSets.h"

#include "runtime/planner/LengthRanges.h"
#include "runtime/planner/StrategyCandidates.h"
#include "tools/dyna-plan/PlanModel.h"
#include "llvm/Support/raw_ostream.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace dyna {
namespace {

/// Named ones of all tensor degrees in powers of two that divide the heads; empty:
/// there is none but 1.
std::string degreesText(int64_t devices, int64_t heads) {
  std::string text;
  for (int64_t tp = 2;
       tp <= devices && devices % tp == 0 && (heads == 0 || heads % tp == 0);
       tp *= 2)
    for (const char *sp : {"", ",sp=1"})
      text += formatText("%stp%d%s: tp=%d%s", text.empty() ? "" : "; ", tp,
                         *sp ? "-sp" : "", tp, sp);
  return text;
}

/// Cut at the model's positions, as steps are, and said.
std::vector<int64_t> cutLengths(std::vector<int64_t> lengths,
                                int64_t positions) {
  int64_t cut = 0;
  for (int64_t &length : lengths)
    if (positions > 0 && length > positions) {
      length = positions;
      ++cut;
    }
  if (cut > 0)
    llvm::errs() << formatText(
        "note: %d of %d samples are cut at the model's %d positions\n", cut,
        lengths.size(), positions);
  return lengths;
}

std::string rangeText(const FoundRange &range) {
  LengthRange described;
  described.first = range.first;
  described.last = range.last;
  return describeLengths(described);
}

class Answer {
public:
  Answer(const StrategyCandidates &candidates, const FoundStrategies &found,
         const LengthDistribution &lengths)
      : candidates_(candidates), found_(found), lengths_(lengths) {
    // Names from the shortest on, whatever the order of the step.
    std::vector<FoundRange> byLength = found.best.ranges;
    std::sort(byLength.begin(), byLength.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    for (size_t i = 0; i < byLength.size(); ++i)
      names_.emplace_back(byLength[i].candidate,
                          std::string(1, static_cast<char>('a' + i)));
  }

  std::string strategies() const {
    return join([&](const FoundRange &range) {
      return describeStrategy(candidates_.strategy(range.candidate));
    });
  }
  std::string ranges() const { return join(rangeText); }
  std::string nameOf(int candidate) const {
    for (const auto &[known, name] : names_)
      if (known == candidate)
        return name;
    return "";
  }
  double gain() const {
    return found_.bestSingle.ranges.empty()
               ? 0
               : found_.bestSingle.seconds() / found_.best.seconds();
  }

  void print() const {
    llvm::outs() << formatText(
        "%d strategies on %d ranks; %d kept for the search, which looked at %d "
        "branches and %d complete answers\n",
        candidates_.considered(), candidates_.graph(0).ranks(),
        candidates_.candidates(), found_.branches, found_.complete);
    llvm::outs() << "\nranges in the order of the step\n";
    for (const FoundRange &range : found_.best.ranges) {
      const auto part = lengths_.between(range.first, range.last);
      llvm::outs() << formatText(
          "  %s  %-14s %6d samples %9d tokens  %8.3f s  %s%s\n",
          nameOf(range.candidate), rangeText(range),
          std::llround(part.probability *
                       static_cast<double>(part.load.sum.samples)),
          std::llround(part.probability *
                       static_cast<double>(part.load.sum.tokens)),
          part.probability * candidates_.phaseSeconds(range.candidate, graphs(),
                                                      part.load, part.longest),
          describeStrategy(candidates_.strategy(range.candidate)),
          range.candidate == found_.best.home ? "  (home)" : "");
    }
    llvm::outs() << formatText(
        "expected step %.3f s: phases %.3f, switches %.3f, update %.3f\n",
        found_.best.seconds(), found_.best.phases, found_.best.switches,
        found_.best.update);
    printSingles();
    llvm::outs() << "\n--strategies \"" << strategies() << "\" --ranges \""
                 << ranges() << "\"\n";
  }

  void printJson() const {
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
    text += formatText("\"considered\": %d, \"kept\": %d, \"branches\": %d, "
                       "\"complete\": %d}\n",
                       candidates_.considered(), candidates_.candidates(),
                       found_.branches, found_.complete);
    llvm::outs() << text;
  }

private:
  /// Home first.
  std::vector<int> graphs() const {
    std::vector<int> all = {found_.best.home};
    for (const FoundRange &range : found_.best.ranges)
      if (range.candidate != found_.best.home)
        all.push_back(range.candidate);
    return all;
  }

  template <typename Text> std::string join(Text text) const {
    std::string all;
    for (const FoundRange &range : found_.best.ranges)
      all += (all.empty() ? "" : "; ") + nameOf(range.candidate) + ": " +
             text(range);
    return all;
  }

  void printSingles() const {
    if (found_.bestSingle.ranges.empty()) {
      llvm::outs() << "no single strategy has room for the longest samples\n";
      return;
    }
    llvm::outs() << formatText(
        "best single strategy %.3f s: %s; the step is %.2f times as fast\n",
        found_.bestSingle.seconds(),
        describeStrategy(candidates_.strategy(found_.bestSingle.home)), gain());
    std::vector<int> order(found_.singles.size());
    std::iota(order.begin(), order.end(), 0);
    std::sort(order.begin(), order.end(), [&](int a, int b) {
      return std::pair(found_.singles[a], a) < std::pair(found_.singles[b], b);
    });
    llvm::outs() << "\nstrategies of the search, alone\n";
    for (int c : order)
      llvm::outs() << formatText("  %s  %s, samples of at most %d tokens\n",
                                 std::isfinite(found_.singles[c])
                                     ? formatText("%8.3f s", found_.singles[c])
                                     : std::string("   no room"),
                                 describeStrategy(candidates_.strategy(c)),
                                 candidates_.mostTokens(c, {c}));
  }

  const StrategyCandidates &candidates_;
  const FoundStrategies &found_;
  const LengthDistribution &lengths_;
  std::vector<std::pair<int, std::string>> names_;
};

} // namespace

int searchSets(const PlanFlags &flags, const std::vector<int64_t> &given) {
  auto table = openTable(flags);
  if (!table.isOk())
    return fail(table.status());
  const int64_t devices = table->cluster().devices();
  if (devices == 0)
    return fail(Status::invalidArgument(
        "--strategies search needs to know the devices: --cluster such as "
        "a100-40g:4x8"));
  auto logical = compileModel(flags, Strategy(), *table);
  if (mlir::failed(logical))
    return 2;
  const auto &facts = logical->manifest().facts();
  const auto lengths = cutLengths(given, facts.positions());
  auto model =
      logical->manifest().degrees_size() > 0
          ? std::move(logical)
          : compileDegrees(flags, degreesText(devices, facts.heads()), *table);
  if (mlir::failed(model))
    return 2;
  auto costs = CostModel::create(*model, *table);
  if (!costs.isOk())
    return fail(costs.status());
  double tokens = 0;
  for (int64_t length : lengths)
    tokens += static_cast<double>(length);
  const LengthDistribution distribution(
      lengths, static_cast<double>(flags.tokensPerBatch) *
                   static_cast<double>(lengths.size()) / tokens);
  StrategySpace space;
  space.ranks = static_cast<int>(devices);
  space.memoryBytes = table->device().memory_bytes();
  space.tokensPerStep = flags.tokensPerBatch;
  auto candidates = StrategyCandidates::create(*costs, space, distribution);
  if (!candidates.isOk())
    return fail(candidates.status());
  StrategySearch search;
  search.ends = usualEnds(distribution.longest());
  auto found = searchStrategies(*candidates, distribution, search);
  if (!found.isOk())
    return fail(found.status());
  const Answer answer(*candidates, *found, distribution);
  if (flags.json)
    answer.printJson();
  else
    answer.print();
  return 0;
}

} // namespace dyna
