//===- CapProgram.h - Minimises sums of slices below caps -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// TeraPipe (ICML'21), algorithm 1, for samples of all lengths at once. Caps limit the
// slowest slice, and the program finds the cuts with the smallest sum below them. It
// differs from the paper in four points.
//
// - There are caps for f, for b and for f + b.
// - One program over the longest sample solves all shorter samples, because the cost
//   of a slice does not depend on what follows. A length with a rest adds one row.
// - Slices of several samples may be joined. A knapsack over the numbers of joined
//   samples follows the programs, under the same caps (section 3.4).
// - Each row starts at the first begin that can be below the caps. That point is found
//   from the row before, also if costs are not monotone.
//
// O(rows + slices below the caps) for each number of joined samples, and O(samples x
// joined samples) for each knapsack. If costs are not monotone, slices above the caps
// may lie between those below.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_CAPPROGRAM_H
#define DYNA_RUNTIME_PLANNER_SLICE_CAPPROGRAM_H

#include "runtime/planner/slice/CutProgram.h"
#include "runtime/planner/slice/SliceTables.h"

namespace dyna {

/// Weights of seconds and of bytes in the sum that is minimised.
struct SliceWeights {
  double seconds = 1, bytes = 0;

  bool areBytesPriced() const { return seconds != 1 || bytes != 0; }
};

/// Returns the first begin of a row with which some slice, or one of an earlier
/// begin, can be below the caps. Returns the end of the row if there is none.
/// Searches from `guess` in both directions.
int64_t firstBegin(const JoinedTable &table, const ModeTable &mode, int64_t row,
                   int64_t guess, const SliceCaps &caps);

class CapProgram : public CutProgram {
public:
  /// The problem and its tables must outlive the program.
  CapProgram(const SliceProblem &problem, const SliceTables &tables);

  /// Never finds none because of `mostSeconds`.
  CappedCuts solve(const SliceCaps &caps, double mostSeconds) override;
  /// Finds the cuts with the smallest weighted sum below finite caps. Of equal sums,
  /// longer last slices and more joined samples come first.
  CappedCuts solveWeighted(const SliceCaps &caps, const SliceWeights &weights);
  /// Copies the slices that can be below the caps next to each other.
  void narrow(const SliceCaps &caps) override;
  SlicePlan plan() const override;

  // Sums of the last `solve`, which found some cuts.

  /// Returns the smallest sum of the first slices of joined samples, up to the
  /// end of a row.
  double valueOf(const JoinedTable &table, int64_t row) const {
    return values_[table.joined - 1][row];
  }
  /// Returns the smallest sum of `samples` samples of a group.
  double sumOf(size_t group, int64_t samples) const {
    return sums_[group][samples];
  }
  /// Return the cost of a slice, by its place in a table, or of a bundle.
  double costOf(const ModeTable &mode, int64_t at) const;
  double costOf(double f, double b, int64_t bytes) const;
  /// Returns the mode of a bundle; -1 if the caps allow none.
  int modeOf(const BundleCosts &bundle) const;

  /// Returns the smallest caps below which there may be cuts, each one alone.
  const SliceCaps &lowest() const { return lowest_; }
  /// Tokens that cuts of a sample of the group can reach without caps, not joined.
  int64_t reached(size_t group);

private:
  struct Step {
    int64_t begin = 0;
    size_t mode = 0;
  };
  /// Slices of joined samples that programs look at.
  const JoinedTable &tableOf(int64_t joined) const {
    return narrow_.empty() ? tables_.tables[joined - 1] : narrow_[joined - 1];
  }
  void findLowest();
  double scan(const JoinedTable &table, int64_t row, int64_t *starts) const;
  void run(size_t number);
  Step lastSlice(const JoinedTable &table, int64_t row) const;
  std::vector<TokenSlice> slicesOf(const JoinedTable &table,
                                   size_t group) const;
  void note(const JoinedTable &table, size_t group, CappedCuts &cuts);
  double pack(size_t group);

  const SliceProblem &problem_;
  const SliceTables &tables_;
  /// [joined - 1]: the slices that programs look at; empty as long as these are all.
  std::vector<JoinedTable> narrow_;
  SliceCaps caps_, lowest_;
  SliceWeights weights_;
  std::vector<SliceCaps> lowestOfTable_;
  /// [joined - 1][row]: smallest sum of a sample that ends with the row.
  std::vector<std::vector<double>> values_;
  /// [joined - 1][row]: whether `note` has looked at the slices up to that end.
  std::vector<std::vector<bool>> seen_;
  /// [group][samples]: smallest sum, and joined samples of the last cut.
  std::vector<std::vector<double>> sums_;
  std::vector<std::vector<int64_t>> packed_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_CAPPROGRAM_H
