//===- AssignStrategies.cpp - Assigns the samples of a step ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/step/AssignStrategies.h"

#include "runtime/base/text/Text.h"

#include <limits>
#include <optional>
#include <tuple>

namespace dyna {

namespace {

/// Rank of a merge among others: the least one is chosen.
struct Way {
  double phaseSeconds = 0, switchSeconds = 0;
  std::vector<int> target; ///< by length: where that range's samples go
  int phases = 0;
  int kept = 0; ///< bits of the ranges by length

  auto order() const {
    return std::tuple(phaseSeconds + switchSeconds, phases, -kept);
  }
};

/// Ranges by length, from here on: 0 is the one with the shortest samples.
class Merger {
public:
  Merger(const LengthRanges &ranges, std::vector<PhaseLengths> lengths,
         const StepEstimates &estimates)
      : ranges_(ranges), lengths_(std::move(lengths)), estimates_(estimates),
        count_(ranges.size()),
        known_(static_cast<size_t>(count_) * count_, unknown) {}

  /// `kept` has the longest.
  Way way(int kept) {
    Way way;
    way.kept = kept;
    way.target.assign(count_, -1);
    std::vector<bool> used(count_);
    for (int first = 0; first < count_;) {
      int last = first;
      while (!(kept >> last & 1))
        ++last;
      for (int i = first; i <= last; ++i)
        way.target[i] = last;
      if (double seconds = phase(first, last); seconds >= 0) {
        way.phaseSeconds += seconds;
        used[last] = true;
        ++way.phases;
      }
      first = last + 1;
    }
    std::vector<bool> inOrder(count_);
    for (int i = 0; i < count_; ++i)
      inOrder[ranges_.byLength()[i]] = used[i];
    std::vector<int> graphs;
    for (int graph = 0; graph < count_; ++graph)
      if (inOrder[graph])
        graphs.push_back(graph);
    if (!graphs.empty())
      way.switchSeconds = estimates_.switchSeconds(graphs);
    return way;
  }

private:
  static constexpr double unknown = -2, none = -1;

  /// Returns the seconds of the samples of ranges first to last, under the
  /// strategy of the last.
  double phase(int first, int last) {
    double &known = known_[static_cast<size_t>(first) * count_ + last];
    if (known != unknown)
      return known;
    PhaseLengths all;
    for (int i = first; i <= last; ++i)
      all.add(lengths_[i]);
    known = all.load.segments == 0
                ? none
                : estimates_.phaseSeconds(ranges_.byLength()[last], all);
    return known;
  }

  const LengthRanges &ranges_;
  std::vector<PhaseLengths> lengths_;
  const StepEstimates &estimates_;
  int count_;
  std::vector<double> known_;
};

/// Returns index of each sample's range.
StatusOr<std::vector<int>> rangesOf(const std::vector<int64_t> &lengths,
                                    const LengthRanges &ranges) {
  std::vector<int> of;
  of.reserve(lengths.size());
  for (size_t i = 0; i < lengths.size(); ++i) {
    const int range = ranges.rangeOf(lengths[i]);
    if (range < 0)
      return Status::invalidArgument(formatText(
          "sample %d has %d tokens, but no range has more than %d", i,
          lengths[i], ranges.ranges()[ranges.byLength().back()].last));
    of.push_back(range);
  }
  return of;
}

} // namespace

StatusOr<Assignment> assignSamples(const std::vector<int64_t> &lengths,
                                   const LengthRanges &ranges,
                                   const StepEstimates &estimates) {
  const int count = ranges.size();
  if (count > maxMergedRanges)
    return Status::invalidArgument(
        formatText("%d ranges: a step has at most %d", count, maxMergedRanges));
  DYNA_ASSIGN_OR_RETURN(std::vector<int> of, rangesOf(lengths, ranges));
  std::vector<int> place(count); // by length, of a range
  for (int i = 0; i < count; ++i)
    place[ranges.byLength()[i]] = i;
  std::vector<PhaseLengths> inRange(count);
  int present = 0; // bits, by length
  for (size_t i = 0; i < lengths.size(); ++i) {
    inRange[place[of[i]]].add(lengths[i]);
    present |= 1 << place[of[i]];
  }
  Merger merger(ranges, std::move(inRange), estimates);
  const int longest = 1 << (count - 1);
  std::optional<Way> best;
  for (int kept = 0; kept < longest; ++kept) {
    Way way = merger.way(kept | longest);
    if (!best || way.order() < best->order())
      best = std::move(way);
  }
  Assignment assignment;
  assignment.phaseSeconds = best->phaseSeconds;
  assignment.switchSeconds = best->switchSeconds;
  assignment.samples.resize(count);
  for (size_t i = 0; i < lengths.size(); ++i)
    assignment.samples[ranges.byLength()[best->target[place[of[i]]]]].push_back(
        static_cast<int>(i));
  for (int i = 0; i < count; ++i)
    assignment.merged += (present >> i & 1) && best->target[i] != i;
  return assignment;
}

StatusOr<Assignment> assignByRange(const std::vector<int64_t> &lengths,
                                   const LengthRanges &ranges) {
  DYNA_ASSIGN_OR_RETURN(std::vector<int> of, rangesOf(lengths, ranges));
  Assignment assignment;
  assignment.samples.resize(ranges.size());
  for (size_t i = 0; i < lengths.size(); ++i)
    assignment.samples[of[i]].push_back(static_cast<int>(i));
  return assignment;
}

} // namespace dyna
