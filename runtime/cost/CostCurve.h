//===- CostCurve.h - Fits the seconds of a function to measured points ----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The fit has two parts, both monotone, so that more work never costs less:
//
// - the *plane* `c0 + c1 queries + c2 pairs + c3 targets`, all c >= 0. It
//   minimises the squares of relative errors, and weighs the counts of a load
//   against each other. Points may not determine all coefficients. For example,
//   pairs follow from queries if all samples have one length. The first of
//   queries, pairs, targets and c0 then stands for the rest.
// - a line through the points from the value of the plane to the measured
//   value. It follows what a plane cannot (small micro-batches, caches). Points
//   that contradict each other, with less time for more work, are averaged.
//
//     seconds |            x        Each point that contradicts no neighbour
//             |        x '          is met exactly. Below the first and above
//             |   . x               the last point, the plane continues,
//             | x                   scaled to meet that point.
//             +--------------- plane
//
// Both use points without context, and determine the cost of whole samples.
// Points with context are those of token slices and correct this cost
// (ContextFactors.h). Without such points, a slice costs as much as whole
// samples with its queries and visible pairs.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_COSTCURVE_H
#define DYNA_RUNTIME_COST_COSTCURVE_H

#include "runtime/base/load/Load.h"
#include "runtime/cost/ContextFactors.h"

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace dyna {

/// Seconds of a call. A curve reads queries, pairs, targets and context of the
/// load. Its `pairs` are those that the function computes, without pairs that a
/// mask hides.
struct MeasuredPoint {
  Load load;
  double seconds = 0;
};

/// Returns the load of a call in the form that tables of costs have.
constexpr Load callLoad(int64_t queries, int64_t pairs, int64_t targets) {
  Load load;
  load.queries = load.keys = queries;
  load.pairs = load.causalPairs = pairs;
  load.targets = targets;
  return load;
}

/// Returns the load of a token slice of causal attention, in the form that
/// tables of costs have.
constexpr Load sliceLoad(int64_t tokens, int64_t context) {
  const Load slice = loadOf({context, tokens}, {0, context + tokens});
  Load load = callLoad(tokens, slice.causalPairs, 0);
  load.context = context;
  return load;
}

class CostCurve {
public:
  /// Fits a curve. At least one point has no context. All numbers are finite
  /// and at least 0. A point with context is one slice. O(n log n).
  explicit CostCurve(const std::vector<MeasuredPoint> &points);

  /// Returns the seconds of a call. Segments that share a call count as slices of their
  /// mean tokens and mean context.
  double seconds(const Load &load) const;
  /// Returns the seconds of whole samples with as many queries, pairs and targets.
  double wholeSeconds(const Load &load) const;

  /// Returns true if slices have costs of their own.
  bool hasContext() const { return !factors_.empty(); }

  /// Returns the coefficients of queries, pairs, targets and 1.
  const std::array<double, 4> &plane() const { return plane_; }

private:
  double onPlane(const Load &load) const;

  std::array<double, 4> plane_{};
  /// Value of the plane and measured value, both ascending.
  std::vector<std::pair<double, double>> line_;
  ContextFactors factors_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_COSTCURVE_H
