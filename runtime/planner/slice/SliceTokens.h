//===- SliceTokens.h - Cuts samples into slices exactly ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// TeraPipe (ICML'21), sections 3.3 and 3.4, exact and for real batches. Of all ways to
// cut the samples of a mini-batch into slices, `sliceTokens` finds the one with the
// smallest
//
//     sum (f + b) + (stages - 1) * (max f + max b)                         [s]
//
// over all slices and bundles (SliceProblem.h). The fill of the pipeline counts once:
// the largest costs are those of all samples together. Every length has a cut of its
// own, and every slice a mode of its own.
//
//     SliceProblem problem;
//     problem.lengths = {8192, 300, 200};
//     problem.bundles = {{1, 2}};
//     problem.costs.slice = [&](const SliceShape &shape) { ... };
//     problem.costs.bundle = [&](const std::vector<int64_t> &lengths, int) { ... };
//     problem.options.stages = 8;
//     problem.options.grain = 64;
//     DYNA_ASSIGN_OR_RETURN(SlicePlan plan, sliceTokens(problem));
//
// How: S(F, B, T) is the smallest sum of plans with all f <= F, all b <= B and all
// f + b <= T. One dynamic program finds it for the samples of all lengths
// (CapProgram.h). S never rises with a cap. So for all plans with F from F0 to F1 and
// F + B from T0 to T1
//
//     S(F1, T1 - F0, T1) + (stages - 1) * T0
//
// is a lower bound. A search of such regions, the one with the smallest bound first,
// ends when no region has a bound below the best plan. A region is looked at in this
// way:
//
// - T1 is lowered to the largest T with which the sum of the region can be better.
// - The program at its corner finds a plan, with largest costs f and b. If f + b <= T1,
//   all T from f + b to T1 have the same sum, and the region ends below f + b.
// - If not, F is split between T1 - b and f. Below the split f is too large, above it b
//   is, so neither part has this plan again.
//
// With one cost for both directions F is T, and the search is a sweep over one cap.
// After some programs, the slices that can still matter are copied next to each other.
//
// Exact, in double precision too: no plan has an objective that is smaller by a bit,
// for one sample that is not joined. Sums are taken from the first slice to the last.
// Sums over samples, and sums below `totalBytes`, are rounded in another order. There
// is no epsilon, no grid of caps and no assumption on the costs.
//
// `sliceBytes` and `sliceTokens` forbid slices, which is free. `totalBytes` makes each
// program a shortest path with a limited resource, also solved exactly
// (KeptProgram.h). That is fast if the limit is slack, and takes seconds for hundreds
// of units with several modes. The formula says nothing of when bytes are given back.
// With all forwards before the backwards all bytes are kept at once.
//
// Complexity: O(n^2 J M) calls of the cost function, for n units of the longest sample,
// J joined samples at most, and M modes. Each program takes O(n w J M) for w slices
// below the caps that end at one token, and O(samples * J). The number of programs has
// no useful bound. Measured are 20 to 100 with one cost, and 30 to 4,000 with two
// (docs/slices.md). Memory: 16 bytes for each cost; 32 if costs are not monotone.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_SLICETOKENS_H
#define DYNA_RUNTIME_PLANNER_SLICE_SLICETOKENS_H

#include "runtime/planner/slice/SliceProblem.h"

namespace dyna {

/// Returns the plan with the smallest objective, with all its sums. Deterministic.
/// The problem is only read, from one thread; nothing of it is kept.
///
/// Fails with InvalidArgument as `checkSlices` does, and if a cost is not a number of
/// seconds or there are more than 2^26 costs. Fails with ResourceExhausted, with bytes
/// and limit, if a sample, a bundle or all of them do not fit.
StatusOr<SlicePlan> sliceTokens(const SliceProblem &problem);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_SLICETOKENS_H
