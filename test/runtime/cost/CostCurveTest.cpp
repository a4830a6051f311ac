//===- CostCurveTest.cpp - Seconds of one function from measured points ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostCurve.h"

#include "runtime/abi/Random.h"

#include <algorithm>
#include <cmath>
#include <gmock/gmock.h>
#include <map>

using namespace dyna;
using testing::ElementsAre;

namespace {

class Draw {
public:
  explicit Draw(uint64_t seed) : counter_(seed << 32) {}
  int64_t below(int64_t bound) {
    return static_cast<int64_t>(dyna_mix64(++counter_) %
                                static_cast<uint64_t>(bound));
  }
  double real() { return static_cast<double>(below(1 << 20)) / (1 << 20); }
  Load load() {
    int64_t tokens = 1 + below(8192);
    const int64_t pairs = tokens * (1 + below(512));
    return callLoad(tokens, pairs, below(tokens + 1));
  }

private:
  uint64_t counter_;
};

double planeOf(const std::array<double, 4> &c, const Load &load) {
  return c[0] * static_cast<double>(load.queries) +
         c[1] * static_cast<double>(load.pairs) +
         c[2] * static_cast<double>(load.targets) + c[3];
}

/// What the plane is chosen by.
double relativeError(const std::array<double, 4> &plane,
                     const std::vector<MeasuredPoint> &points) {
  double sum = 0;
  for (const MeasuredPoint &point : points)
    sum += std::pow(planeOf(plane, point.load) / point.seconds - 1, 2);
  return sum;
}

TEST(CostCurveTest, FindsAPlaneAgain) {
  Draw draw(1);
  for (int round = 0; round < 200; ++round) {
    std::array<double, 4> truth{};
    for (int i = 0; i < 4; ++i)
      truth[i] = draw.below(3) ? draw.real() * (i == 1 ? 1e-9 : 1e-6) : 0;
    truth[draw.below(4)] += 1e-7;
    std::vector<MeasuredPoint> points;
    for (int i = 0; i < 12; ++i) {
      Load load = draw.load();
      points.push_back({load, planeOf(truth, load)});
    }
    CostCurve curve(points);
    for (int i = 0; i < 20; ++i) {
      Load load = draw.load();
      double expected = planeOf(truth, load);
      EXPECT_NEAR(curve.seconds(load), expected, 1e-3 * expected);
    }
  }
}

TEST(CostCurveTest, NoPlaneIsNearer) {
  Draw draw(2);
  for (int round = 0; round < 100; ++round) {
    std::vector<MeasuredPoint> points(1 + draw.below(8));
    for (MeasuredPoint &point : points)
      point = {draw.load(), 1e-5 + draw.real()};
    std::array<double, 4> plane = CostCurve(points).plane();
    EXPECT_THAT(plane, testing::Each(testing::Ge(0)));
    double error = relativeError(plane, points);
    for (int i = 0; i < 500; ++i) {
      std::array<double, 4> other = plane;
      for (int column = 0; column < 4; ++column) {
        // Steps of all sizes, relative and from zero.
        double size = std::pow(10, -6 * draw.real()) * (draw.real() - 0.5);
        other[column] =
            std::max(0.0, other[column] * (1 + size) +
                              (column == 1   ? 1e-7
                               : column == 3 ? 1
                                             : 1e-4) *
                                  size * static_cast<double>(draw.below(2)));
      }
      EXPECT_GE(relativeError(other, points), error * (1 - 1e-6) - 1e-8);
    }
  }
}

TEST(CostCurveTest, MoreWorkNeverCostsLess) {
  Draw draw(3);
  for (int round = 0; round < 300; ++round) {
    std::vector<MeasuredPoint> points(1 + draw.below(10));
    for (MeasuredPoint &point : points)
      point = {draw.load(), draw.below(5) ? draw.real() : 0};
    CostCurve curve(points);
    for (int i = 0; i < 50; ++i) {
      Load less = draw.load(), more = less;
      more.queries += draw.below(5000);
      more.pairs += draw.below(1000000);
      more.targets += draw.below(5000);
      ASSERT_GE(curve.seconds(less), 0);
      ASSERT_LE(curve.seconds(less), curve.seconds(more) * (1 + 1e-12));
    }
  }
}

// Measured times that ascend with tokens, however crooked, are met.
TEST(CostCurveTest, MeetsAscendingPoints) {
  Draw draw(4);
  for (int round = 0; round < 100; ++round) {
    std::vector<MeasuredPoint> points;
    Load load;
    double seconds = 1e-6;
    for (int i = 0; i < 8; ++i) {
      load.queries += 1 + draw.below(1000);
      load.pairs = 10 * load.queries;
      seconds += draw.real();
      points.push_back({load, seconds});
    }
    CostCurve curve(points);
    for (const MeasuredPoint &point : points)
      EXPECT_NEAR(curve.seconds(point.load), point.seconds,
                  1e-9 * point.seconds);
    // Between two points it is between them.
    for (size_t i = 1; i < points.size(); ++i) {
      Load middle = points[i].load;
      middle.queries = (middle.queries + points[i - 1].load.queries) / 2;
      middle.pairs = 10 * middle.queries;
      double got = curve.seconds(middle);
      EXPECT_GE(got, points[i - 1].seconds * (1 - 1e-9));
      EXPECT_LE(got, points[i].seconds * (1 + 1e-9));
    }
  }
}

TEST(CostCurveTest, OnePointIsProportional) {
  CostCurve curve({{callLoad(1000, 0, 0), 0.5}});
  EXPECT_DOUBLE_EQ(curve.seconds(callLoad(2000, 0, 0)), 1);
  EXPECT_DOUBLE_EQ(curve.seconds(callLoad(10, 0, 0)), 0.005);
  // Nothing says what pairs cost: tokens stand for them.
  CostCurve attention({{callLoad(1000, 500500, 1000), 0.5}});
  EXPECT_DOUBLE_EQ(attention.seconds(callLoad(1000, 9999999, 1000)), 0.5);
  // Once per step, without tokens.
  CostCurve update({{{}, 0.25}});
  EXPECT_DOUBLE_EQ(update.seconds({}), 0.25);
  EXPECT_DOUBLE_EQ(update.seconds(callLoad(4096, 1, 1)), 0.25);
}

TEST(CostCurveTest, PointsThatContradictEachOtherAreAveraged) {
  CostCurve curve({{callLoad(100, 0, 0), 3},
                   {callLoad(200, 0, 0), 1},
                   {callLoad(400, 0, 0), 8}});
  EXPECT_DOUBLE_EQ(curve.seconds(callLoad(100, 0, 0)), 2);
  EXPECT_DOUBLE_EQ(curve.seconds(callLoad(150, 0, 0)), 2);
  EXPECT_DOUBLE_EQ(curve.seconds(callLoad(200, 0, 0)), 2);
  EXPECT_DOUBLE_EQ(curve.seconds(callLoad(300, 0, 0)), 5);
  EXPECT_DOUBLE_EQ(curve.seconds(callLoad(400, 0, 0)), 8);
  CostCurve twice({{callLoad(100, 0, 0), 1}, {callLoad(100, 0, 0), 3}});
  EXPECT_DOUBLE_EQ(twice.seconds(callLoad(100, 0, 0)), 2);
}

TEST(CostCurveTest, NothingCostsNothing) {
  CostCurve curve({{callLoad(100, 5, 0), 0}, {callLoad(200, 5, 0), 0}});
  EXPECT_EQ(curve.seconds(callLoad(1 << 20, 1 << 20, 1)), 0);
}

/// Factors of points, computed without sorting: looks for neighbours among all points.
double naiveFactor(const std::vector<ContextFactors::Point> &points,
                   double tokens, double context) {
  std::map<int64_t, std::map<int64_t, std::vector<double>>> rows;
  for (const ContextFactors::Point &point : points)
    rows[point.tokens][point.context].push_back(point.factor);
  auto line = [](const std::map<int64_t, double> &values, double x) {
    double low = -1, high = -1, below = 0, above = 0;
    for (auto [place, value] : values) {
      const double at = std::log2(static_cast<double>(place));
      if (at <= x)
        low = at, below = value;
      if (at >= x && high < 0)
        high = at, above = value;
    }
    if (low < 0)
      return above;
    if (high < 0 || high == low)
      return below;
    return below + (above - below) * (x - low) / (high - low);
  };
  std::map<int64_t, double> ofRows;
  for (const auto &[row, contexts] : rows) {
    std::map<int64_t, double> means;
    for (const auto &[place, factors] : contexts) {
      double sum = 0;
      for (double factor : factors)
        sum += factor;
      means[place] = sum / static_cast<double>(factors.size());
    }
    ofRows[row] = line(means, std::log2(context));
  }
  return line(ofRows, std::log2(tokens));
}

TEST(ContextFactorsTest, EqualABruteForceSearchForNeighbours) {
  Draw draw(5);
  for (int round = 0; round < 200; ++round) {
    std::vector<ContextFactors::Point> points(1 + draw.below(12));
    for (ContextFactors::Point &point : points)
      point = {1 + draw.below(6), 1 + draw.below(8), draw.real()};
    const ContextFactors factors(points);
    for (int i = 0; i < 30; ++i) {
      const double tokens = 0.5 + 8 * draw.real(),
                   context = 0.5 + 10 * draw.real();
      ASSERT_NEAR(factors.at(tokens, context),
                  naiveFactor(points, tokens, context), 1e-12);
    }
  }
  EXPECT_TRUE(ContextFactors().empty());
  EXPECT_EQ(ContextFactors().at(3, 5), 1);
}

/// Whole samples of several lengths, whose seconds are a plane.
std::vector<MeasuredPoint> wholePoints() {
  std::vector<MeasuredPoint> points;
  for (int64_t tokens : {8, 64, 512, 4096})
    for (int64_t length : {8, 64, 512})
      if (length <= tokens) {
        const Load load =
            callLoad(tokens, tokens / length * length * (length + 1) / 2, 0);
        points.push_back({load, planeOf({2e-6, 3e-9, 0, 1e-5}, load)});
      }
  return points;
}

TEST(CostCurveTest, SlicesCostWhatPointsWithContextSay) {
  std::vector<MeasuredPoint> points = wholePoints();
  const CostCurve whole(points);
  EXPECT_FALSE(whole.hasContext());
  // Without such points, context is the pairs alone.
  Load slice = sliceLoad(64, 1024);
  EXPECT_EQ(slice.pairs, 64 * 1024 + 64 * 65 / 2);
  EXPECT_EQ(whole.seconds(slice), whole.wholeSeconds(slice));
  for (int64_t tokens : {8, 64})
    for (int64_t context : {128, 1024}) {
      const Load load = sliceLoad(tokens, context);
      const double factor = (tokens == 8 ? 3 : 1.5) + (context == 128 ? 0 : 1);
      points.push_back({load, factor * whole.seconds(load)});
    }
  const CostCurve both(points);
  EXPECT_TRUE(both.hasContext());
  for (size_t i = 0; i < points.size(); ++i)
    EXPECT_NEAR(both.seconds(points[i].load), points[i].seconds,
                1e-9 * points[i].seconds)
        << i;
  // Whole samples keep their seconds to the last bit.
  Draw draw(6);
  for (int i = 0; i < 100; ++i) {
    const Load load = draw.load();
    EXPECT_EQ(both.seconds(load), whole.seconds(load));
  }
  auto factorOf = [&](const Load &load) {
    return both.seconds(load) / whole.seconds(load);
  };
  // Half way between two sizes, contexts, and beyond all of them.
  EXPECT_NEAR(factorOf(sliceLoad(8, 362)), 3.5, 1e-3);
  EXPECT_NEAR(factorOf(sliceLoad(22, 128)), 2.25, 0.04);
  EXPECT_NEAR(factorOf(sliceLoad(2, 16)), 3, 1e-9);
  EXPECT_NEAR(factorOf(sliceLoad(512, 8192)), 2.5, 1e-9);
  // Two equal slices in one call have the factor of one.
  Load two = times(sliceLoad(64, 1024), 2);
  two.segments = 2;
  EXPECT_NEAR(factorOf(two), 2.5, 1e-9);
}

TEST(CostCurveTest, FactorsAreFinite) {
  CostCurve curve({{callLoad(8, 36, 0), 1e-300}, {sliceLoad(8, 8), 1e9}});
  EXPECT_TRUE(std::isfinite(curve.seconds(sliceLoad(1 << 20, 1 << 20))));
  CostCurve free({{callLoad(8, 36, 0), 0}, {sliceLoad(8, 8), 1}});
  EXPECT_EQ(free.seconds(sliceLoad(8, 8)), 0);
  EXPECT_FALSE(free.hasContext());
}

} // namespace
