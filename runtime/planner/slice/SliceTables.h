//===- SliceTables.h - Tabulates costs of slices by their ends --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Costs depend on the begin and the tokens of a slice, not on the length of its
// sample. So samples of all lengths share one table for each number of joined
// samples. Row e has the slices that end after e units of the grain, by their
// begin:
//
//     row 1:  [0,1)
//     row 2:  [0,2) [1,2)
//     row 3:  [0,3) [1,3) [2,3)
//     tail:   [0,L) [1,L) [2,L) [3,L)    of a length L of 3 units and a rest
//
// A slice that is not allowed has infinite seconds. So has a mode that costs no less
// in both directions than another mode of the same slice.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_SLICETABLES_H
#define DYNA_RUNTIME_PLANNER_SLICE_SLICETABLES_H

#include "runtime/planner/slice/SliceProblem.h"

namespace dyna {

/// Samples of one length.
struct LengthGroup {
  int64_t tokens = 0;
  int64_t units = 0; ///< Whole units of the grain.
  int64_t rest = 0;  ///< Tokens behind the last whole unit.
  std::vector<int64_t> samples;

  int64_t count() const { return static_cast<int64_t>(samples.size()); }
};

/// Returns the samples that are in no bundle, by length. O(samples log samples).
std::vector<LengthGroup> groupLengths(const SliceProblem &problem);

/// Costs of all slices in one mode.
struct ModeTable {
  std::vector<double> forward, backward; ///< By `JoinedTable::at`.
  /// Smallest cost of the slices of a row up to that begin. Empty if these are the
  /// costs themselves, because no cost rises in its row.
  std::vector<double> lowForward, lowBackward;
  /// Empty if the sum of bytes is not limited.
  std::vector<int64_t> bytes;

  const double *lowestForward() const {
    return (lowForward.empty() ? forward : lowForward).data();
  }
  const double *lowestBackward() const {
    return (lowBackward.empty() ? backward : lowBackward).data();
  }
};

/// Slices of a number of joined samples.
struct JoinedTable {
  int64_t joined = 1;
  int64_t units = 0; ///< Rows 1 to units end after as many units.
  /// Offset of each row; row 0 is empty. Tails follow.
  std::vector<int64_t> offsets;
  /// First begin of each row that the table has: 0 in tables with all slices.
  std::vector<int64_t> firsts;
  /// Row of the tail of each group. 0 if the group has no rest, -1 if the group
  /// has fewer samples than are joined.
  std::vector<int64_t> tails;
  /// Modes that some slice may have.
  std::vector<ModeTable> modes;
  std::vector<int> modeNumbers; ///< Number of each one in the problem.

  int64_t rows() const { return static_cast<int64_t>(offsets.size()) - 1; }
  /// Slices of the table that end with the row.
  int64_t count(int64_t row) const { return offsets[row + 1] - offsets[row]; }
  /// Returns the place of a slice, by the row with its end.
  int64_t at(int64_t row, int64_t begin) const {
    return offsets[row] + begin - firsts[row];
  }
  /// Returns the row that ends a sample of the group.
  int64_t lastRow(const LengthGroup &group, size_t number) const {
    return tails[number] > 0 ? tails[number] : group.units;
  }
};

struct BundleCosts {
  std::vector<SliceCost> modes; ///< Infinite where not allowed.
};

struct SliceTables {
  int64_t grain = 1;
  std::vector<LengthGroup> groups;  ///< Samples that are sliced, by length.
  std::vector<JoinedTable> tables;  ///< [joined samples - 1]
  std::vector<BundleCosts> bundles; ///< In the order of the problem.
  /// Largest finite seconds of a slice or bundle.
  double largestForward = 0, largestBackward = 0;
};

/// Asks for the cost of every slice once. Fails with InvalidArgument if the problem is
/// not valid (`checkSlices`) or needs more than 2^26 costs. Fails with
/// ResourceExhausted, with bytes and limit, if a bundle does not fit. O(costs).
StatusOr<SliceTables> makeSliceTables(const SliceProblem &problem);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_SLICETABLES_H
