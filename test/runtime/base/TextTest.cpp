//===- TextTest.cpp - Formatted text --------------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/Text.h"

#include "runtime/base/text/ParseBytes.h"

#include <gtest/gtest.h>

#include <cstdio>
#include <limits>

using namespace dyna;

namespace {

/// What the C library makes of it.
template <typename... T> std::string printed(const char *format, T... values) {
  char text[512];
  std::snprintf(text, sizeof text, format, values...);
  return text;
}

TEST(TextTest, integersOfAllSizesAreWritten) {
  constexpr int64_t least = std::numeric_limits<int64_t>::min();
  constexpr uint64_t most = std::numeric_limits<uint64_t>::max();
  EXPECT_EQ(formatText("%d %d", least, most),
            "-9223372036854775808 18446744073709551615");
  EXPECT_EQ(formatText("%d %d %d %d", int8_t(-1), uint8_t(200), int16_t(-300),
                       4000000000u),
            "-1 200 -300 4000000000");
  EXPECT_EQ(formatText("%d %d", size_t(7), true), "7 1");
  enum : int8_t { Negative = -2, Seven = 7 };
  EXPECT_EQ(formatText("%d %d", Seven, Negative), "7 -2");
  EXPECT_EQ(formatText("%016x %x %04x", most, -1, uint8_t(10)),
            "ffffffffffffffff ffffffff 000a");
  EXPECT_EQ(formatText("[%5d] [%-5d] [%+d] [%03d]", 42, 42, 42, 7),
            "[   42] [42   ] [+42] [007]");
}

TEST(TextTest, numbersAreThoseOfPrintf) {
  for (double value : {0.0, -0.0, 1.0 / 3, 1e-300, 1.7e308, 12345.678,
                       std::numeric_limits<double>::infinity(),
                       std::numeric_limits<double>::quiet_NaN()}) {
    EXPECT_EQ(formatText("%g|%.17g|%f", value, value, value),
              printed("%g|%.17g|%f", value, value, value));
    EXPECT_EQ(formatText("%.3e %8.2f", value, value),
              printed("%.3e %8.2f", value, value));
  }
  EXPECT_EQ(formatText("%g", 0.5f), "0.5");
}

TEST(TextTest, textsAreOfAnyType) {
  std::string text = "of a string";
  EXPECT_EQ(formatText("%s, %s, %s", text, std::string_view(text).substr(3),
                       "literal"),
            "of a string, a string, literal");
  EXPECT_EQ(formatText("[%6s] [%-6s] [%.2s]", "abc", text.substr(0, 2), text),
            "[   abc] [of    ] [of]");
  std::string zero("a\0b", 3);
  EXPECT_EQ(formatText("%s", zero), zero);
  EXPECT_EQ(formatText("nothing, 100 %%"), "nothing, 100 %");
  EXPECT_EQ(formatText("%s", std::string(100000, 'x')),
            std::string(100000, 'x'));
}

TEST(TextTest, formatsFitTheirArguments) {
  using detail::fitsFormat;
  static_assert(fitsFormat<int, std::string>("%d of %s"));
  static_assert(fitsFormat<char[4], double>("%-8s %% %.3f"));
  static_assert(!fitsFormat<int>("%d of %s"), "one too few");
  static_assert(!fitsFormat<int, int>("%d"), "one too many");
  static_assert(!fitsFormat<int64_t>("%s"));
  static_assert(!fitsFormat<int64_t>("%g"));
  static_assert(!fitsFormat<double>("%d"));
  static_assert(!fitsFormat<std::string>("%d"));
  static_assert(!fitsFormat<int64_t>("%lld"), "lengths are not written");
  static_assert(!fitsFormat<uint64_t>("%u"));
  static_assert(!fitsFormat<int64_t>("%"), "no letter");
}

TEST(TextTest, conversionsWithoutArgumentStayVisible) {
  const char *volatile chosen = "%d of %s%"; // known at run time alone
  EXPECT_EQ(formatText(chosen, 1), "1 of %s%");
  EXPECT_EQ(formatText(chosen, "a"), "%d of a%");
  EXPECT_EQ(formatText(chosen, 1, "a", 2), "1 of a%");
}

TEST(TextTest, buffersAreNeverOverrun) {
  std::string whole = formatText("%s %d %5s|", "text", 1234567, "ab");
  for (size_t capacity = 0; capacity <= whole.size() + 2; ++capacity) {
    std::string buffer(whole.size() + 4, '?');
    formatInto(buffer.data(), capacity, "%s %d %5s|", "text", 1234567, "ab");
    std::string expected = whole.substr(0, capacity ? capacity - 1 : 0);
    if (capacity > 0)
      expected += '\0';
    expected.resize(buffer.size(), '?');
    EXPECT_EQ(buffer, expected) << capacity;
  }
}

TEST(TextTest, bytesAreWrittenForPeople) {
  EXPECT_EQ(formatBytes(0), "0 B");
  EXPECT_EQ(formatBytes(1023), "1023 B");
  EXPECT_EQ(formatBytes(1536), "1.5 KiB");
  EXPECT_EQ(formatBytes(int64_t(3) << 50), "3072.0 TiB");
}

TEST(TextTest, bytesAreReadWithUnits) {
  EXPECT_EQ(*parseBytes("1000"), 1000);
  EXPECT_EQ(*parseBytes("4GiB"), INT64_C(4) << 30);
  EXPECT_EQ(*parseBytes("1.5M"), 3 << 19);
  for (const char *text : {"", "GiB", "-1", "0", "0.5", "4X", "1e30", "nan",
                           "0x10", "0X1p4", " 1", "inf", "1 GiB"})
    EXPECT_FALSE(parseBytes(text).isOk()) << text;
}

} // namespace
