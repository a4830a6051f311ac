//===- CostCurve.cpp - Fits the seconds of a function to measured points --===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/CostCurve.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

constexpr int columns = 4;
using Row = std::array<double, columns>;

Row rowOf(const Load &load) {
  return {static_cast<double>(load.queries), static_cast<double>(load.pairs),
          static_cast<double>(load.targets), 1};
}

double dot(const Row &a, const Row &b) {
  double sum = 0;
  for (int i = 0; i < columns; ++i)
    sum += a[i] * b[i];
  return sum;
}

/// Normal equations of a weighted least-squares problem.
struct Equations {
  std::array<Row, columns> matrix{};
  Row right{};
  double squares = 0; ///< of the right-hand sides

  void add(const Row &row, double value) {
    for (int i = 0; i < columns; ++i) {
      for (int j = 0; j < columns; ++j)
        matrix[i][j] += row[i] * row[j];
      right[i] += row[i] * value;
    }
    squares += value * value;
  }

  /// Solves with only the columns of `subset`. Returns false if these do not
  /// determine a solution.
  bool solve(unsigned subset, Row &solution) const;
  double error(const Row &x) const {
    double sum = squares - 2 * dot(right, x);
    for (int i = 0; i < columns; ++i)
      sum += x[i] * dot(matrix[i], x);
    return sum;
  }
};

/// Gauss without pivoting, which positive definite matrices do not need.
bool Equations::solve(unsigned subset, Row &solution) const {
  // If a column depends on the others, only rounding errors remain of it.
  constexpr double singular = 1e-9;
  std::array<Row, columns> a = matrix;
  Row b = right;
  for (int k = 0; k < columns; ++k) {
    if (!(subset >> k & 1))
      continue;
    if (a[k][k] <= singular * matrix[k][k])
      return false;
    for (int i = k + 1; i < columns; ++i) {
      if (!(subset >> i & 1))
        continue;
      double factor = a[i][k] / a[k][k];
      for (int j = k; j < columns; ++j)
        a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  solution = {};
  for (int k = columns - 1; k >= 0; --k) {
    if (!(subset >> k & 1))
      continue;
    double sum = b[k];
    for (int j = k + 1; j < columns; ++j)
      sum -= a[k][j] * solution[j];
    solution[k] = sum / a[k][k];
  }
  return true;
}

/// Tries each set of coefficients that are zero, and returns the nearest
/// solution without a negative one. The optimum under the constraint is one of
/// them. A smaller set of coefficients wins unless a larger one is clearly
/// nearer.
Row fitPlane(const std::vector<MeasuredPoint> &points) {
  Row scale{};
  double largest = 0;
  for (const MeasuredPoint &point : points) {
    Row row = rowOf(point.load);
    for (int i = 0; i < columns; ++i)
      scale[i] = std::max(scale[i], row[i]);
    largest = std::max(largest, point.seconds);
  }
  if (largest == 0)
    return {};
  Equations equations;
  for (const MeasuredPoint &point : points) {
    // A point of no seconds has no relative error, so bound the weight.
    double weight = 1 / std::max(point.seconds, 1e-6 * largest);
    Row row = rowOf(point.load);
    for (int i = 0; i < columns; ++i)
      row[i] *= scale[i] > 0 ? weight / scale[i] : 0;
    equations.add(row, weight * point.seconds);
  }
  Row best{};
  double bestError = equations.squares;
  double tolerance = 1e-12 * equations.squares;
  for (int size = 1; size <= columns; ++size)
    for (unsigned subset = 1; subset < 1u << columns; ++subset) {
      Row solution;
      if (__builtin_popcount(subset) != size ||
          !equations.solve(subset, solution) ||
          *std::min_element(solution.begin(), solution.end()) < 0)
        continue;
      double error = equations.error(solution);
      if (error < bestError - tolerance) {
        best = solution;
        bestError = error;
      }
    }
  for (int i = 0; i < columns; ++i)
    best[i] = scale[i] > 0 ? best[i] / scale[i] : 0;
  return best;
}

/// Neighbours that do not ascend are joined at their mean.
struct Block {
  double first, last; ///< values of the plane
  double sum;         ///< measured seconds
  int points;
  double mean() const { return sum / points; }
};

/// Keeps products of any costs finite. Measured factors are below ten.
constexpr double mostFactor = 1e6;

std::vector<MeasuredPoint> withoutContext(std::vector<MeasuredPoint> points) {
  points.erase(std::remove_if(points.begin(), points.end(),
                              [](const MeasuredPoint &point) {
                                return point.load.context > 0;
                              }),
               points.end());
  return points;
}

} // namespace

CostCurve::CostCurve(const std::vector<MeasuredPoint> &points) {
  const std::vector<MeasuredPoint> whole = withoutContext(points);
  plane_ = fitPlane(whole);
  std::vector<std::pair<double, double>> measured;
  for (const MeasuredPoint &point : whole)
    measured.emplace_back(onPlane(point.load), point.seconds);
  std::sort(measured.begin(), measured.end());
  std::vector<Block> blocks;
  for (auto [plane, seconds] : measured) {
    blocks.push_back({plane, plane, seconds, 1});
    while (blocks.size() > 1) {
      const Block &last = blocks.back();
      Block &before = blocks[blocks.size() - 2];
      if (last.first > before.last && last.mean() >= before.mean())
        break;
      before = {before.first, last.last, before.sum + last.sum,
                before.points + last.points};
      blocks.pop_back();
    }
  }
  for (const Block &block : blocks) {
    line_.emplace_back(block.first, block.mean());
    if (block.last > block.first)
      line_.emplace_back(block.last, block.mean());
  }
  std::vector<ContextFactors::Point> factors;
  for (const MeasuredPoint &point : points) {
    const Load &load = point.load;
    // If a whole sample costs nothing, there is nothing to correct.
    if (const double guess = wholeSeconds(load); load.context > 0 && guess > 0)
      factors.push_back({load.queries, load.context,
                         std::min(point.seconds / guess, mostFactor)});
  }
  factors_ = ContextFactors(std::move(factors));
}

double CostCurve::onPlane(const Load &load) const {
  return dot(plane_, rowOf(load));
}

double CostCurve::seconds(const Load &load) const {
  const double whole = wholeSeconds(load);
  if (load.context <= 0 || load.queries <= 0 || factors_.empty())
    return whole;
  const auto segments =
      static_cast<double>(std::max<int64_t>(load.segments, 1));
  return whole * factors_.at(static_cast<double>(load.queries) / segments,
                             static_cast<double>(load.context) / segments);
}

double CostCurve::wholeSeconds(const Load &load) const {
  double plane = onPlane(load);
  auto above =
      std::lower_bound(line_.begin(), line_.end(), plane,
                       [](const auto &at, double x) { return at.first < x; });
  if (above == line_.begin() || above == line_.end()) {
    const auto &[x, y] = above == line_.end() ? line_.back() : line_.front();
    // The plane is 0 here only if it is 0 at all smaller values, too.
    return x > 0 ? y * (plane / x) : y;
  }
  auto [x0, y0] = *(above - 1);
  auto [x1, y1] = *above;
  return y0 + (y1 - y0) * ((plane - x0) / (x1 - x0));
}

} // namespace dyna
