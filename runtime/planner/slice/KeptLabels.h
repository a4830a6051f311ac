//===- KeptLabels.h - Holds plans as sums of seconds and bytes --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_KEPTLABELS_H
#define DYNA_RUNTIME_PLANNER_SLICE_KEPTLABELS_H

#include "runtime/planner/slice/CapProgram.h"

namespace dyna {

/// Seconds and bytes of a part of a plan, and how the part came about.
struct KeptLabel {
  double seconds = 0;
  int64_t bytes = 0;
  int64_t parent = -1; ///< Label that this one adds to.
  int64_t choice =
      0; ///< Begin of a slice, joined samples, or mode of a bundle.
  int64_t detail = 0; ///< Mode of a slice, or label of a cut.
};

/// The labels of one plan below caps, pruned by bounds of the cap program.
class KeptLabels {
public:
  /// The last solve of the program had the same caps, weight 1 of seconds and weight
  /// `price` of bytes, and found some cuts.
  KeptLabels(const SliceProblem &problem, const SliceTables &tables,
             const CapProgram &program, const SliceCaps &caps, double price);

  /// Finds the plan with the fewest seconds below `mostSeconds` that keeps at most
  /// `totalBytes`. False if there is none.
  bool solve(double mostSeconds, SlicePlan &plan);

private:
  struct Front {
    std::vector<KeptLabel> labels;
    std::vector<int64_t> whole; ///< Labels of whole cuts.
    bool isMade = false;
  };
  using Labels = std::vector<int64_t>;

  bool mayLead(double seconds, int64_t bytes, double rest) const;
  static void keepBest(const std::vector<KeptLabel> &labels, Labels &at);
  const Front &frontOf(size_t group, const JoinedTable &table);
  void extend(const JoinedTable &table, int64_t row, int64_t label,
              double others, Labels &guess, Front &front,
              std::vector<Labels> &at) const;
  Labels addGroup(size_t group, const Labels &before);
  Labels addBundle(size_t bundle, const Labels &before);
  void restore(int64_t label, SlicePlan &plan) const;
  std::vector<TokenSlice> slicesOf(size_t group, const JoinedTable &table,
                                   int64_t label) const;

  const SliceProblem &problem_;
  const SliceTables &tables_;
  const CapProgram &program_;
  const SliceCaps caps_;
  const double price_;
  double most_ = 0;
  /// Smallest priced sums of what follows each group, and each bundle.
  std::vector<double> behindGroup_, behindBundle_;
  double all_ = 0; ///< Smallest priced sum of whole plans.
  std::vector<std::vector<Front>> fronts_; ///< [group][joined - 1]
  std::vector<KeptLabel> chain_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_KEPTLABELS_H
