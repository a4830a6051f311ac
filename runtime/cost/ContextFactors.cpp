//===- ContextFactors.cpp - Corrects costs of token slices ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/cost/ContextFactors.h"

#include <algorithm>
#include <cmath>

namespace dyna {
namespace {

/// Returns the value at `x` of what has values at ascending places. `valueOf` computes
/// the value of one of these. Outside, the nearest place counts.
template <typename Places, typename ValueOf>
double interpolate(const Places &places, double x, const ValueOf &valueOf) {
  auto above =
      std::lower_bound(places.begin(), places.end(), x,
                       [](const auto &at, double y) { return at.first < y; });
  if (above == places.begin())
    return valueOf(*above);
  if (above == places.end())
    return valueOf(places.back());
  const auto &below = *(above - 1);
  const double part = (x - below.first) / (above->first - below.first);
  return (1 - part) * valueOf(below) + part * valueOf(*above);
}

} // namespace

ContextFactors::ContextFactors(std::vector<Point> points) {
  std::stable_sort(
      points.begin(), points.end(), [](const Point &a, const Point &b) {
        return std::pair(a.tokens, a.context) < std::pair(b.tokens, b.context);
      });
  for (size_t first = 0, end = 0; first < points.size(); first = end) {
    const Point &point = points[first];
    double sum = 0;
    for (; end < points.size() && points[end].tokens == point.tokens &&
           points[end].context == point.context;
         ++end)
      sum += points[end].factor;
    if (first == 0 || points[first - 1].tokens != point.tokens)
      rows_.emplace_back(std::log2(point.tokens), Line());
    rows_.back().second.emplace_back(std::log2(point.context),
                                     sum / static_cast<double>(end - first));
  }
}

double ContextFactors::at(double tokens, double context) const {
  if (rows_.empty())
    return 1;
  const double x = std::log2(context);
  return interpolate(rows_, std::log2(tokens), [&](const auto &row) {
    return interpolate(row.second, x,
                       [](const auto &point) { return point.second; });
  });
}

} // namespace dyna
