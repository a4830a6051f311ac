//===- TraceWriterTest.cpp - Tests that traces keep every slice -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/text/TraceWriter.h"

#include "test/runtime/base/TraceNesting.h"

#include <cmath>
#include <gmock/gmock.h>
#include <random>

using namespace dyna;

namespace {

/// Slices that touch, at times that no decimal number is: each has others inside,
/// of which the first begins and the last ends with it.
std::string traceOf(uint64_t seed) {
  std::mt19937_64 random(seed);
  // From parts of a nanosecond to seconds.
  std::uniform_real_distribution<double> exponent(-9.5, 0.5);
  TraceWriter writer;
  double begin = 0;
  for (int i = 0; i < 2000; ++i) {
    const double length = std::pow(10.0, exponent(random));
    const double inner = begin + length / 3;
    const double end = begin + length;
    writer.slice(0, 0, "outer", "test", begin, end, {});
    writer.slice(0, 0, "first", "test", begin, inner, {});
    writer.slice(0, 0, "second", "test", inner, end, {});
    begin = end;
  }
  return writer.finish();
}

TEST(TraceWriterTest, PerfettoKeepsSlicesThatTouch) {
  for (uint64_t seed = 1; seed <= 20; ++seed)
    EXPECT_EQ(droppedSlices(traceOf(seed)), "") << seed;
}

// Durations are those that were given, to an eighth of a microsecond.
TEST(TraceWriterTest, TimesAreRoundedToTheNearestTick) {
  TraceWriter writer;
  writer.slice(0, 0, "a", "test", 153.549e-6, 206.656e-6, {});
  const std::string text = writer.finish();
  EXPECT_THAT(text, testing::HasSubstr("\"ts\": 153.500, \"dur\": 53.125"));
}

TEST(TraceWriterTest, TokensAreNamedIfASampleHasThem) {
  const auto textOf = [](const TraceTokens &tokens) {
    TraceWriter writer;
    TraceArguments arguments;
    arguments.microBatch = 3;
    arguments.tokens = tokens;
    writer.slice(0, 0, "a", "test", 0, 1, arguments);
    return writer.finish();
  };
  EXPECT_THAT(textOf({7, 1, 20, 60}),
              testing::HasSubstr("\"micro_batch\": 3, \"sample\": 7, "
                                 "\"tokens\": 20, \"context\": 60}"));
  EXPECT_THAT(textOf({-1, 2, 20, 0}),
              testing::HasSubstr("\"samples\": 2, \"tokens\": 20, "
                                 "\"context\": 0}"));
  EXPECT_THAT(textOf({}), testing::Not(testing::HasSubstr("tokens")));
}

// The rule of this test is not one that everything keeps.
TEST(TraceWriterTest, OverlapsAreFound) {
  auto one = [](double begin, double duration) {
    return formatText(
        "{\"name\": \"a\", \"ph\": \"X\", \"pid\": 0, \"tid\": 0, "
        "\"ts\": %.3f, \"dur\": %.3f}",
        begin, duration);
  };
  auto trace = [](const std::string &events) {
    return "{\"traceEvents\": [" + events + "]}";
  };
  EXPECT_EQ(droppedSlices(trace(one(1, 4) + "," + one(2, 3))), "");
  EXPECT_EQ(droppedSlices(trace(one(1, 4) + "," + one(5, 3))), "");
  EXPECT_EQ(droppedSlices(trace(one(1, 4) + "," + one(2, 4))),
            "process 0, track 0: 'a' [2000, 6000] ns in 'a' to 5000 ns\n");
  // As three decimals wrote slices that touch.
  EXPECT_NE(droppedSlices(trace(one(153.549, 53.108) + "," + one(206.656, 1))),
            "");
}

} // namespace
