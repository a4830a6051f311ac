//===- FitContext.cpp - Fits the paper's formula for context --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/slice/FitContext.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

constexpr int terms = 4;
using Row = std::array<double, terms + 1>; ///< Factors of the numbers, seconds.

/// Solves least squares by Householder's reflections, in place. Returns false
/// if the columns depend on each other.
bool reflect(std::vector<Row> &rows) {
  for (int column = 0; column < terms; ++column) {
    double all = 0, below = 0;
    for (size_t row = 0; row < rows.size(); ++row) {
      const double square = rows[row][column] * rows[row][column];
      all += square;
      if (row >= static_cast<size_t>(column))
        below += square;
    }
    // Reflections keep the length of a column, so `all` is still that of the
    // input.
    if (below <= 1e-20 * all || all == 0)
      return false;
    const double pivot = rows[column][column];
    const double length = pivot > 0 ? -std::sqrt(below) : std::sqrt(below);
    std::vector<double> normal;
    for (size_t row = column; row < rows.size(); ++row)
      normal.push_back(rows[row][column]);
    normal[0] -= length;
    const double scale = 1 / (length * (length - pivot));
    for (int other = column; other <= terms; ++other) {
      double product = 0;
      for (size_t i = 0; i < normal.size(); ++i)
        product += normal[i] * rows[column + i][other];
      for (size_t i = 0; i < normal.size(); ++i)
        rows[column + i][other] -= scale * product * normal[i];
    }
  }
  return true;
}

void measureErrors(const std::vector<ContextPoint> &points, ContextFit &fit) {
  int64_t counted = 0;
  double squares = 0;
  for (const ContextPoint &point : points) {
    const double error =
        std::abs(fit.seconds(point.tokens, point.context) - point.seconds);
    squares += error * error;
    if (point.seconds <= 0)
      continue;
    ++counted;
    fit.meanError += error / point.seconds;
    fit.largestError = std::max(fit.largestError, error / point.seconds);
  }
  if (counted > 0)
    fit.meanError /= static_cast<double>(counted);
  fit.deviation = std::sqrt(squares / static_cast<double>(points.size()));
}

} // namespace

StatusOr<ContextFit> fitContext(const std::vector<ContextPoint> &points) {
  // Scale factors to about 1, so that columns stay independent numerically.
  double mostTokens = 1, mostContext = 1;
  for (const ContextPoint &point : points) {
    if (point.tokens < 0 || point.context < 0 || !std::isfinite(point.seconds))
      return Status::invalidArgument(
          formatText("%d tokens after %d take %g s: expects numbers of tokens "
                     "from 0 on, and finite seconds",
                     point.tokens, point.context, point.seconds));
    mostTokens = std::max(mostTokens, static_cast<double>(point.tokens));
    mostContext = std::max(mostContext, static_cast<double>(point.context));
  }
  std::vector<Row> rows;
  for (const ContextPoint &point : points) {
    const double i = static_cast<double>(point.tokens) / mostTokens,
                 j = static_cast<double>(point.context) / mostContext;
    rows.push_back({1, i, j, i * j, point.seconds});
  }
  if (rows.size() < terms || !reflect(rows))
    return Status::invalidArgument(
        formatText("%d points do not determine the cost of context: expects "
                   "two numbers of tokens after each of two contexts",
                   points.size()));
  ContextFit fit;
  for (int term = terms - 1; term >= 0; --term) {
    double rest = rows[term][terms];
    for (int other = term + 1; other < terms; ++other)
      rest -= rows[term][other] * fit.numbers[other];
    fit.numbers[term] = rest / rows[term][term];
  }
  fit.numbers[1] /= mostTokens;
  fit.numbers[2] /= mostContext;
  fit.numbers[3] /= mostTokens * mostContext;
  measureErrors(points, fit);
  return fit;
}

} // namespace dyna
