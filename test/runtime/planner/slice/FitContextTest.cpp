//===- FitContextTest.cpp - The paper's formula for the cost of context ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/FitContext.h"
#include "test/runtime/planner/Draw.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

using namespace dyna;
using testing::HasSubstr;

namespace {

std::vector<ContextPoint> pointsOf(const std::array<double, 4> &numbers,
                                   double noise = 0) {
  Draw draw(7);
  std::vector<ContextPoint> points;
  for (int64_t tokens : {8, 64, 256, 1024, 2048})
    for (int64_t context : {0, 128, 512, 1024, 6144}) {
      const auto i = static_cast<double>(tokens),
                 j = static_cast<double>(context);
      const double seconds =
          numbers[0] + numbers[1] * i + numbers[2] * j + numbers[3] * i * j;
      points.push_back(
          {tokens, context,
           seconds * (1 + noise * (draw.below(2001) - 1000) / 1000.0)});
    }
  return points;
}

TEST(FitContextTest, FindsWhatThePointsWereMadeOf) {
  const std::array<double, 4> numbers = {2e-5, 3e-9, 4e-9, 5e-12};
  auto fit = fitContext(pointsOf(numbers));
  ASSERT_TRUE(fit.isOk()) << fit.status().message();
  for (int term = 0; term < 4; ++term)
    EXPECT_NEAR(fit->numbers[term], numbers[term], 1e-9 * numbers[term]);
  EXPECT_LT(fit->largestError, 1e-9);
  EXPECT_NEAR(fit->seconds(100, 1000), 2e-5 + 3e-7 + 4e-6 + 5e-7, 1e-13);
}

// Noise may say that context saves time.
TEST(FitContextTest, SecondsMayBeNegative) {
  const std::array<double, 4> numbers = {-2e-5, 3e-9, 4e-9, 5e-12};
  auto fit = fitContext(pointsOf(numbers));
  ASSERT_TRUE(fit.isOk()) << fit.status().message();
  for (int term = 0; term < 4; ++term)
    EXPECT_NEAR(fit->numbers[term], numbers[term],
                1e-9 * std::abs(numbers[term]));
}

double squares(const std::vector<ContextPoint> &points, const ContextFit &fit) {
  double sum = 0;
  for (const ContextPoint &point : points)
    sum +=
        std::pow(fit.seconds(point.tokens, point.context) - point.seconds, 2);
  return sum;
}

TEST(FitContextTest, NoOtherNumbersFitBetter) {
  const auto points = pointsOf({2e-5, 3e-9, 4e-9, 5e-12}, 0.1);
  auto fit = fitContext(points);
  ASSERT_TRUE(fit.isOk());
  const double least = squares(points, *fit);
  EXPECT_NEAR(fit->deviation, std::sqrt(least / 25), 1e-12 * fit->deviation);
  for (int term = 0; term < 4; ++term)
    for (double factor : {0.99, 1.01}) {
      ContextFit other = *fit;
      other.numbers[term] *= factor;
      EXPECT_GT(squares(points, other), least);
    }
  double mean = 0, largest = 0;
  for (const ContextPoint &point : points) {
    const double error =
        std::abs(fit->seconds(point.tokens, point.context) / point.seconds - 1);
    mean += error / 25;
    largest = std::max(largest, error);
  }
  EXPECT_NEAR(fit->meanError, mean, 1e-12);
  EXPECT_NEAR(fit->largestError, largest, 1e-12);
  EXPECT_GT(fit->meanError, 0.01);
}

TEST(FitContextTest, FewOrAlikePointsAreRefused) {
  auto message = [](const std::vector<ContextPoint> &points) {
    auto fit = fitContext(points);
    EXPECT_EQ(fit.status().code(), StatusCode::InvalidArgument);
    return fit.status().message();
  };
  EXPECT_THAT(message({}), HasSubstr("0 points do not determine"));
  EXPECT_THAT(message({{1, 1, 1}, {2, 1, 1}, {1, 2, 1}}),
              HasSubstr("3 points"));
  // One number of tokens.
  EXPECT_THAT(message({{8, 1, 1}, {8, 2, 1}, {8, 3, 1}, {8, 4, 2}, {8, 5, 2}}),
              HasSubstr("5 points do not determine"));
  // No context at all.
  EXPECT_THAT(message({{8, 0, 1}, {9, 0, 1}, {7, 0, 1}, {6, 0, 2}}),
              HasSubstr("4 points do not determine"));
  ASSERT_TRUE(fitContext({{1, 1, 1}, {2, 1, 1}, {1, 2, 1}, {2, 2, 3}}).isOk());
  EXPECT_THAT(message({{-1, 1, 1}}), HasSubstr("-1 tokens after 1"));
  EXPECT_THAT(message({{1, -1, 1}}), HasSubstr("1 tokens after -1"));
  EXPECT_THAT(message({{1, 1, INFINITY}}), HasSubstr("take inf s"));
  EXPECT_THAT(message({{1, 1, std::nan("")}}), HasSubstr("take nan s"));
}

} // namespace
