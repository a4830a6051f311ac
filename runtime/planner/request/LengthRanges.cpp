//===- LengthRanges.cpp - Assigns lengths of samples to strategies --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/request/LengthRanges.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <numeric>

namespace dyna {
namespace {

/// More tokens than any sample has.
constexpr int64_t mostTokens = INT64_C(1) << 40;
const std::string homeKey = "home=";

std::string trim(const std::string &text) {
  const size_t begin = text.find_first_not_of(" \t\n");
  if (begin == std::string::npos)
    return "";
  return text.substr(begin, text.find_last_not_of(" \t\n") - begin + 1);
}

bool parseTokens(const std::string &text, int64_t &tokens) {
  tokens = 0;
  for (char c : text) {
    if (c < '0' || c > '9' || (tokens = 10 * tokens + (c - '0')) > mostTokens)
      return false;
  }
  return !text.empty();
}

std::string describe(const LengthRange &range) {
  return range.name + ": " + describeLengths(range);
}

/// Parses a range: "name: 1025-4096" or "name: 4097-".
StatusOr<LengthRange> parseRange(const std::string &text,
                                 const std::vector<std::string> &names) {
  auto bad = [&](const std::string &what) {
    return Status::invalidArgument("range '" + text + "' " + what);
  };
  LengthRange range;
  const size_t colon = text.find(':');
  if (colon == std::string::npos && text.find('-') == std::string::npos)
    return bad("has no lengths: expects, for instance, short: 0-1024; where "
               "ranges are searched for, search stands alone");
  if (colon == std::string::npos)
    return bad("has no name: expects, for instance, short: 0-1024");
  range.name = trim(text.substr(0, colon));
  const auto found = std::find(names.begin(), names.end(), range.name);
  if (found == names.end()) {
    std::string known;
    for (const std::string &name : names)
      known += (known.empty() ? "" : ", ") + name;
    return bad("is of no strategy: " +
               (names.empty()
                    ? "none has a name (give --strategies, or compile "
                      "them in)"
                    : "there are " + known));
  }
  range.strategy = static_cast<int>(found - names.begin());
  const std::string ends = trim(text.substr(colon + 1));
  if (ends.find(':') != std::string::npos)
    return bad("has two colons: ranges are separated by ';', as in short: "
               "0-1024; long: 1025-");
  const size_t dash = ends.find('-');
  if (dash == std::string::npos ||
      !parseTokens(trim(ends.substr(0, dash)), range.first))
    return bad(formatText("expects tokens as 1025-4096, or 4097- without an "
                          "end, up to %d, but got '%s'",
                          mostTokens, ends));
  const std::string end = trim(ends.substr(dash + 1));
  if (!end.empty() && !parseTokens(end, range.last))
    return bad(formatText(
        "expects a whole number of tokens up to %d as its end, but got '%s'",
        mostTokens, end));
  return range;
}

} // namespace

LengthRanges LengthRanges::ofAll(std::string name) {
  LengthRange all;
  all.name = std::move(name);
  return *create({std::move(all)});
}

StatusOr<LengthRanges> LengthRanges::create(std::vector<LengthRange> ranges,
                                            const std::string &home) {
  if (ranges.empty())
    return Status::invalidArgument(
        "no ranges given: write, for instance, \"short: 0-1024; long: 1025-\"");
  LengthRanges all;
  all.ranges_ = std::move(ranges);
  all.byLength_.resize(all.ranges_.size());
  std::iota(all.byLength_.begin(), all.byLength_.end(), 0);
  std::stable_sort(all.byLength_.begin(), all.byLength_.end(),
                   [&](int a, int b) {
                     return all.ranges_[a].first < all.ranges_[b].first;
                   });
  const LengthRange *before = nullptr;
  for (int index : all.byLength_) {
    const LengthRange &range = all.ranges_[index];
    for (int other = 0; other < index; ++other)
      if (all.ranges_[other].name == range.name)
        return Status::invalidArgument(
            formatText("two ranges, %s and %s, are of the strategy '%s', which "
                       "can have one",
                       describeLengths(all.ranges_[other]),
                       describeLengths(range), range.name));
    if (range.last < range.first)
      return Status::invalidArgument(
          formatText("range '%s' ends before it begins", describe(range)));
    if (!before && range.first > 1)
      return Status::invalidArgument(
          formatText("no range has samples of 1 to %d tokens: the first is "
                     "'%s'",
                     range.first - 1, describe(range)));
    if (before && range.first <= before->last)
      return Status::invalidArgument(
          formatText("samples of %d tokens are in two ranges, '%s' and '%s'",
                     range.first, describe(*before), describe(range)));
    if (before && range.first > before->last + 1)
      return Status::invalidArgument(
          formatText("no range has samples of %d to %d tokens, between '%s' "
                     "and '%s'",
                     before->last + 1, range.first - 1, describe(*before),
                     describe(range)));
    before = &range;
  }
  if (home.empty())
    return all;
  std::string known;
  for (int index = 0; index < all.size(); ++index) {
    const std::string &name = all.ranges_[index].name;
    known += (known.empty() ? "" : ", ") + name;
    if (name == home)
      all.home_ = index;
  }
  if (all.home_ < 0)
    return Status::invalidArgument("home is '" + home +
                                   "', which has no range: there are " + known);
  return all;
}

int LengthRanges::rangeOf(int64_t tokens) const {
  const auto found =
      std::partition_point(byLength_.begin(), byLength_.end(), [&](int index) {
        return ranges_[index].last < tokens;
      });
  return found == byLength_.end() ? -1 : *found;
}

Status LengthRanges::hold(int64_t longestSample) const {
  const LengthRange &last = ranges_[byLength_.back()];
  if (longestSample <= last.last)
    return Status::ok();
  return Status::invalidArgument(formatText(
      "no range has samples of %d to %d tokens, and there may be some: '%s' "
      "could end as %s: %d-",
      last.last + 1, longestSample, describe(last), last.name, last.first));
}

StatusOr<LengthRanges>
parseLengthRanges(const std::string &text,
                  const std::vector<std::string> &names) {
  std::vector<LengthRange> ranges;
  std::string home;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(';', begin), text.size());
    const std::string piece = trim(text.substr(begin, end - begin));
    begin = end + 1;
    if (piece.empty())
      continue;
    if (piece.rfind(homeKey, 0) == 0) {
      const std::string name = trim(piece.substr(homeKey.size()));
      if (name.empty() || !home.empty())
        return Status::invalidArgument(
            "'" + piece +
            "': expects one home=NAME, of a strategy that has a "
            "range");
      home = name;
      continue;
    }
    DYNA_ASSIGN_OR_RETURN(LengthRange range, parseRange(piece, names));
    ranges.push_back(std::move(range));
  }
  return LengthRanges::create(std::move(ranges), home);
}

std::string describeLengths(const LengthRange &range) {
  return range.isOpen() ? formatText("%d-", range.first)
                        : formatText("%d-%d", range.first, range.last);
}

} // namespace dyna
