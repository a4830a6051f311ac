//===- CostCurve.h - Seconds of one function from measured points ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Two steps, both monotone, so that more work never costs less:
//
// - the *plane* `c0 + c1 tokens + c2 pairs + c3 targets`, all c >= 0, nearest
// to
//   the points by the squares of relative errors. It says how the kinds of work
//   weigh against each other. Of coefficients that the points do not tell apart
//   (all samples of one length: pairs follow from tokens) the first of tokens,
//   pairs, targets, c0 stands for the rest.
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
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_COST_COSTCURVE_H
#define DYNA_RUNTIME_COST_COSTCURVE_H

#include <array>
#include <cstdint>
#include <utility>
#include <vector>

namespace dyna {

/// What one call of a layer function works on.
struct Work {
  int64_t tokens = 0;
  int64_t pairs = 0; ///< visible (query, key) pairs
  int64_t targets = 0;
};

struct MeasuredPoint {
  Work work;
  double seconds = 0;
};

class CostCurve {
public:
  /// At least one point; nothing is negative, everything finite. O(n log n).
  explicit CostCurve(const std::vector<MeasuredPoint> &points);

  double seconds(const Work &work) const;

  /// Of tokens, pairs, targets and 1.
  const std::array<double, 4> &plane() const { return plane_; }

private:
  double onPlane(const Work &work) const;

  std::array<double, 4> plane_{};
  /// What the plane says and what was measured, both ascending.
  std::vector<std::pair<double, double>> line_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_COST_COSTCURVE_H
