//===- KeptProgram.h - Minimises sums under a byte limit ------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Cuts with the smallest sum of seconds below caps, whose slices and bundles keep at
// most `totalBytes` in sum. This is a shortest path with a limited resource. It is
// solved exactly, in three steps:
//
// 1. The program without the limit. If its cuts fit, they are the answer.
// 2. A price for a byte. The sum of t + price * bytes, less price * limit, is a lower
//    bound for every price. The largest such bound is found by intersecting lines. A
//    bound alone is no answer: cuts that no price finds may be the best.
// 3. Labels (seconds, bytes) of suffixes, from the end of each sample to its begin,
//    then over samples and bundles. A label is dropped if another one has neither more
//    seconds nor more bytes. It is also dropped if the bound of step 2, for the prefix
//    that is missing, shows that it leads to nothing better.
//
// Steps 1 and 2 are a few runs of the cap program. Step 3 is O(n w P log P) for n rows
// with w slices below the caps and P labels a row. P is at most the number of
// different sums of bytes. With bytes in proportion to tokens that is n + 1 for two
// modes, and O(n^(modes - 1)) for more. For arbitrary bytes P may grow exponentially, as the
// problem is NP-hard, but the bound of step 2 keeps it small in practice.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_KEPTPROGRAM_H
#define DYNA_RUNTIME_PLANNER_SLICE_KEPTPROGRAM_H

#include "runtime/planner/slice/CapProgram.h"

namespace dyna {

class KeptProgram : public CutProgram {
public:
  /// All three must outlive this program.
  KeptProgram(const SliceProblem &problem, const SliceTables &tables,
              CapProgram &program)
      : problem_(problem), tables_(tables), program_(program) {}

  CappedCuts solve(const SliceCaps &caps, double mostSeconds) override;
  void narrow(const SliceCaps &caps) override { program_.narrow(caps); }
  SlicePlan plan() const override { return best_.plan; }

private:
  /// Cuts, with their seconds and bytes.
  struct Candidate {
    SlicePlan plan;
    CappedCuts cuts;
  };
  Candidate timed(SlicePlan plan) const;
  double raiseBound(const SliceCaps &caps, Candidate above);

  const SliceProblem &problem_;
  const SliceTables &tables_;
  CapProgram &program_;
  Candidate best_;
  double price_ = 0; ///< Seconds for a byte.
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_KEPTPROGRAM_H
