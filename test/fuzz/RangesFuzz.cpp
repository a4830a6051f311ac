//===- RangesFuzz.cpp - Strategies and their ranges as text ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// An input is what --strategies takes, a zero byte, and what --ranges takes: as a
// run reads them, one after another.
//
//===----------------------------------------------------------------------===//

#include "test/fuzz/Fuzz.h"

#include "runtime/plan/model/Strategy.h"
#include "runtime/planner/request/LengthRanges.h"
#include "test/runtime/planner/DescribeRanges.h"

#include <algorithm>
#include <set>

using namespace dyna;
using namespace dyna::test;

namespace {

void requireWords(const Status &status) {
  require(!status.message().empty(), "a refusal says what is wrong");
}

/// Names of good strategies; empty where they are refused.
std::vector<std::string> namesOf(const std::string &text) {
  auto strategies = parseStrategies(text);
  if (!strategies.isOk()) {
    requireWords(strategies.status());
    return {};
  }
  std::vector<std::string> names;
  for (const Strategy &strategy : *strategies) {
    require(strategy.dp >= 1 && strategy.tp >= 1 && strategy.pp >= 1 &&
                strategy.ranks() >= 1,
            "a good strategy has ranks");
    auto again = parseStrategy(describeStrategy(strategy));
    require(again.isOk() &&
                describeStrategy(*again) == describeStrategy(strategy),
            "a strategy is read as it is written");
    names.push_back(strategy.name);
  }
  return names;
}

/// Every length is in the one range that has it.
void requireRanges(const LengthRanges &ranges,
                   const std::vector<std::string> &names) {
  require(ranges.size() >= 1 &&
              ranges.byLength().size() == ranges.ranges().size(),
          "there are ranges");
  std::set<int> strategies;
  int64_t next = ranges.ranges()[ranges.byLength().front()].first;
  require(next == 0 || next == 1, "the shortest samples are in a range");
  for (int index : ranges.byLength()) {
    const LengthRange &range = ranges.ranges()[index];
    require(range.strategy >= 0 &&
                range.strategy < static_cast<int>(names.size()) &&
                names[range.strategy] == range.name,
            "a range names a strategy");
    require(strategies.insert(range.strategy).second,
            "a strategy has one range");
    require(range.first == next && range.last >= range.first,
            "ranges have no gaps");
    for (int64_t tokens : {range.first, range.last})
      require(ranges.rangeOf(tokens) == index, "a length is in its range");
    next = range.isOpen() ? range.last : range.last + 1;
  }
  const LengthRange &longest = ranges.ranges()[ranges.byLength().back()];
  require(ranges.hold(longest.last).isOk(), "the longest range holds its end");
  require(longest.isOpen() || (ranges.rangeOf(longest.last + 1) == -1 &&
                               !ranges.hold(longest.last + 1).isOk()),
          "longer samples are in none");
}

} // namespace

std::vector<std::string> dyna::test::fuzzSeeds() {
  const std::string zero(1, '\0');
  return {"short: dp=4; long: tp=2,pp=2" + zero + "short: 0-1024; long: 1025-",
          "a: dp=4; b: dp=2,tp=2,zero=1,sp=1; c: pp=4,layers=1+2+3+4" + zero +
              "c: 4097-65536; a: 1-9; b: 10-4096",
          "one: dp=2,order=pp+dp+tp,recompute=selective" + zero + "one: 0-",
          "x: dp=1;;" + zero + " x :0 - 7 ;",
          "a: dp=2; b: tp=2" + zero + "a: 0-7; b: 8-; home=b"};
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  const std::string text(reinterpret_cast<const char *>(data), size);
  const size_t zero = text.find('\0');
  const std::vector<std::string> names = namesOf(text.substr(0, zero));
  auto ranges = parseLengthRanges(
      zero == std::string::npos ? "" : text.substr(zero + 1), names);
  if (!ranges.isOk()) {
    requireWords(ranges.status());
    return 0;
  }
  ++acceptedInputs;
  requireRanges(*ranges, names);
  const std::string written = describeLengthRanges(*ranges);
  auto again = parseLengthRanges(written, names);
  require(again.isOk() && describeLengthRanges(*again) == written,
          "ranges are read as they are written");
  return 0;
}
