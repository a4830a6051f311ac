//===- LengthRangesTest.cpp - Ranges as text, and what is refused ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/request/LengthRanges.h"
#include "runtime/base/text/Text.h"
#include "test/runtime/planner/DescribeRanges.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

using namespace dyna;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

const std::vector<std::string> names = {"long", "mid", "short"};

LengthRanges parsed(const std::string &text) {
  auto ranges = parseLengthRanges(text, names);
  EXPECT_TRUE(ranges.isOk()) << ranges.status().message();
  return *ranges;
}

std::string refusal(const std::string &text) {
  auto ranges = parseLengthRanges(text, names);
  EXPECT_FALSE(ranges.isOk()) << text;
  if (ranges.isOk())
    return "";
  EXPECT_EQ(ranges.status().code(), StatusCode::InvalidArgument);
  EXPECT_EQ(ranges.status().message().find('\n'), std::string::npos);
  return ranges.status().message();
}

TEST(LengthRanges, SamplesBelongToTheRangeOfTheirLength) {
  LengthRanges ranges = parsed("short: 0-1024; mid: 1025-4096; long: 4097-");
  EXPECT_THAT(ranges.byLength(), ElementsAre(0, 1, 2));
  for (auto [tokens, range] : {std::pair<int64_t, int>{1, 0},
                               {1024, 0},
                               {1025, 1},
                               {4096, 1},
                               {4097, 2},
                               {INT64_C(1) << 50, 2}})
    EXPECT_EQ(ranges.rangeOf(tokens), range) << tokens;
  EXPECT_EQ(ranges.ranges()[0].strategy, 2);
  EXPECT_EQ(ranges.ranges()[2].strategy, 0);
  EXPECT_TRUE(ranges.hold(INT64_C(1) << 50).isOk());
}

TEST(LengthRanges, AreWrittenInTheOrderOfTheStepWhateverTheirLengths) {
  LengthRanges ranges = parsed(" long:4097- ;short :1-1024;; mid: 1025 - 4096");
  EXPECT_EQ(ranges.ranges()[0].name, "long");
  EXPECT_THAT(ranges.byLength(), ElementsAre(1, 2, 0));
  EXPECT_EQ(ranges.rangeOf(5), 1);
  EXPECT_EQ(ranges.rangeOf(5000), 0);
  const std::string text = describeLengthRanges(ranges);
  EXPECT_EQ(text, "long: 4097-; short: 1-1024; mid: 1025-4096");
  EXPECT_EQ(describeLengthRanges(parsed(text)), text);
}

TEST(LengthRanges, OneOfThemMayBeHome) {
  EXPECT_EQ(parsed("short: 0-8; long: 9-").home(), -1);
  for (const char *text : {"short: 0-8; long: 9-; home=short",
                           " home= short; short: 0-8;long: 9-"}) {
    const LengthRanges ranges = parsed(text);
    EXPECT_EQ(ranges.home(), 0);
    EXPECT_EQ(describeLengthRanges(ranges), "short: 0-8; long: 9-; home=short");
  }
  EXPECT_EQ(refusal("short: 0-8; long: 9-; home=mid"),
            "home is 'mid', which has no range: there are short, long");
  for (const char *twice : {"home=", "home=mid; home=long"})
    EXPECT_THAT(refusal(std::string("mid: 0-8; long: 9-; ") + twice),
                HasSubstr("expects one home=NAME"));
}

TEST(LengthRanges, StrategiesMayHaveNone) {
  LengthRanges ranges = parsed("mid: 0-");
  EXPECT_EQ(ranges.size(), 1);
  EXPECT_EQ(ranges.ranges()[0].strategy, 1);
}

TEST(LengthRanges, OneThatEndsHoldsNoLongerSamples) {
  LengthRanges ranges = parsed("short: 0-10; mid: 11-20");
  EXPECT_EQ(ranges.rangeOf(21), -1);
  EXPECT_TRUE(ranges.hold(20).isOk());
  Status status = ranges.hold(64);
  ASSERT_FALSE(status.isOk());
  EXPECT_EQ(status.message(),
            "no range has samples of 21 to 64 tokens, and there may be some: "
            "'mid: 11-20' could end as mid: 11-");
}

TEST(LengthRanges, WhatIsWrongIsSaidWithItsNumbers) {
  EXPECT_EQ(refusal("short: 0-1024; mid: 2000-"),
            "no range has samples of 1025 to 1999 tokens, between 'short: "
            "0-1024' and 'mid: 2000-'");
  EXPECT_EQ(refusal("mid: 1000-; short: 0-1024"),
            "samples of 1000 tokens are in two ranges, 'short: 0-1024' and "
            "'mid: 1000-'");
  EXPECT_EQ(refusal("short: 0-; mid: 5-8"),
            "samples of 5 tokens are in two ranges, 'short: 0-' and 'mid: "
            "5-8'");
  EXPECT_EQ(refusal("short: 0-8; mid: 0-8"),
            "samples of 0 tokens are in two ranges, 'short: 0-8' and 'mid: "
            "0-8'");
  EXPECT_EQ(refusal("short: 0-8; mid: 8-"),
            "samples of 8 tokens are in two ranges, 'short: 0-8' and 'mid: "
            "8-'");
  EXPECT_EQ(refusal("short: 7-"),
            "no range has samples of 1 to 6 tokens: the first is 'short: 7-'");
  EXPECT_EQ(refusal("short: 8-7"), "range 'short: 8-7' ends before it begins");
  EXPECT_EQ(refusal("tall: 0-8"), "range 'tall: 0-8' is of no strategy: there "
                                  "are long, mid, short");
  EXPECT_EQ(refusal("mid: 0-8; mid: 9-"), "two ranges, 0-8 and 9-, are of the "
                                          "strategy 'mid', which can have one");
  EXPECT_EQ(refusal("0-8"),
            "range '0-8' has no name: expects, for instance, short: 0-1024");
  for (const char *text : {"short", "serach"})
    EXPECT_EQ(refusal(text),
              std::string("range '") + text +
                  "' has no lengths: expects, for instance, short: 0-1024; "
                  "where ranges are searched for, search stands alone");
  EXPECT_EQ(refusal("short: 0-8 mid: 9-"),
            "range 'short: 0-8 mid: 9-' has two colons: ranges are separated "
            "by ';', as in short: 0-1024; long: 1025-");
  for (const char *text : {"", " ; "})
    EXPECT_EQ(refusal(text), "no ranges given: write, for instance, \"short: "
                             "0-1024; long: 1025-\"");
  for (const char *ends : {"", "5", "-", "-5", "x-5", "1.5-3", "+1-3"})
    EXPECT_EQ(refusal(std::string("mid: ") + ends),
              formatText("range '%s' expects tokens as 1025-4096, or 4097- "
                         "without an end, up to 1099511627776, but got '%s'",
                         *ends ? std::string("mid: ") + ends : "mid:", ends));
  for (const char *end : {"x", "-1", "9e3", "99999999999999999999"})
    EXPECT_EQ(refusal(std::string("mid: 0-") + end),
              formatText("range 'mid: 0-%s' expects a whole number of tokens "
                         "up to 1099511627776 as its end, but got '%s'",
                         end, end));
  EXPECT_EQ(parseLengthRanges("a: 0-", {}).status().message(),
            "range 'a: 0-' is of no strategy: none has a name (give "
            "--strategies, or compile them in)");
}

} // namespace
