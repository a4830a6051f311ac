//===- CostCurve.h - Seconds of one function from measured points ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two steps, both monotone, so that more work never costs less:
//
// - the *plane* `c0 + c1 queries + c2 pairs + c3 targets`, all c >= 0, nearest
//   to the points by the squares of relative errors. It says how the counts of a
//   load weigh against each other. Points do not tell all coefficients apart if,
//   for example, all samples have one length: pairs then follow from queries. The
//   first of queries, pairs, targets and c0 stands for the rest.
// - a line through the points from what the plane says to what was measured, so
//   that what is not a plane (small micro-batches, caches) is followed as well.
//   Points that contradict each other, less time for more work, are averaged.
//
//     seconds |            x        A point whose neighbours do not contradict
//             |        x '          it is met exactly; below the first and
//             above |   . x               the last the plane goes on, scaled to
//             meet | x                   that point.
//             +--------------- plane
//
// Both come from points without context, and whole samples have no other cost. Points
// with context are those of token slices, and correct these (ContextFactors.h). Without
// such points, a slice costs as much as whole samples with its queries and visible pairs.
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

/// Seconds of a call. A curve reads queries, pairs, targets and context of the load. Its
/// `pairs` are those that the function computes, without the ones that a mask hides.
struct MeasuredPoint {
  Load load;
  double seconds = 0;
};

/// Returns the load of a call as tables of costs state it.
constexpr Load callLoad(int64_t queries, int64_t pairs, int64_t targets) {
  Load load;
  load.queries = load.keys = queries;
  load.pairs = load.causalPairs = pairs;
  load.targets = targets;
  return load;
}

/// Returns the load of a token slice of causal attention, as tables of costs state it.
constexpr Load sliceLoad(int64_t tokens, int64_t context) {
  const Load slice = loadOf({context, tokens}, {0, context + tokens});
  Load load = callLoad(tokens, slice.causalPairs, 0);
  load.context = context;
  return load;
}

class CostCurve {
public:
  /// At least one point has no context; nothing is negative, everything finite. A point
  /// with context is one slice. O(n log n).
  explicit CostCurve(const std::vector<MeasuredPoint> &points);

  /// Returns the seconds of a call. Segments that share a call count as slices of their
  /// mean tokens and mean context.
  double seconds(const Load &load) const;
  /// Returns the seconds of whole samples with as many queries, pairs and targets.
  double wholeSeconds(const Load &load) const;

  /// Returns true if slices have costs of their own.
  bool hasContext() const { return !factors_.empty(); }

  /// Coefficients of queries, pairs, targets and 1.
  const std::array<double, 4> &plane() const { return plane_; }

private:
  double onPlane(const Load &load) const;

  std::array<double, 4> plane_{};
  /// What the plane says and what was measured, both ascending.
  std::vector<std::pair<double, double>> line_;
  ContextFactors factors_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_COSTCURVE_H
