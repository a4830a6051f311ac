//===- SliceBaselines.h - Cuts of published systems -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How other systems cut samples into slices, as pure functions of the same problem as
// `sliceTokens`. All of them
//
// - use mode 0, if they do not say otherwise: they do not choose recomputation;
// - do not look at `sliceTokens`, `sliceBytes` and `totalBytes`, as none has memory in
//   its search. The plan says what it keeps;
// - leave bundles as they are, if they do not say otherwise;
// - return plans whose sums and objective are those of `timeSlices`, so that they are
//   compared with the optimum by the same formula.
//
// All fail with InvalidArgument as `checkSlices` and `timeSlices` do.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_SLICEBASELINES_H
#define DYNA_RUNTIME_PLANNER_SLICE_SLICEBASELINES_H

#include "runtime/planner/slice/SliceProblem.h"

namespace dyna {

/// The program of TeraPipe's text (sections 3.3 and 3.4). For every length and every
/// number of joined samples, caps of t = f + b are tried from small to large.
/// A cap closer than `epsilon` seconds to the last one tried is skipped; the paper has
/// 0.1 ms. The search ends when stages * cap exceeds the best time. A knapsack then
/// chooses how many samples to join, with the smallest sum of times. If all caps with a
/// cut are skipped, the largest cap is tried too. The
/// fill of the pipeline counts once for each cut; `estimate` is that sum. A bundle is
/// a cut with one slice.
/// O(caps * slices below the caps) for each length and number of joined samples.
StatusOr<SlicePlan> sliceByPaper(const SliceProblem &problem,
                                 double epsilon = 1e-4);

/// Runs the program of TeraPipe's published code: one cap for all cuts, one
/// fill of the pipeline, and a knapsack for each cap. Caps closer than 0.01 ms
/// are skipped. `estimate` is the best sum + (stages - 1) * cap. O(caps *
/// slices below the caps) for each number of joined samples.
StatusOr<SlicePlan> sliceByPaperCode(const SliceProblem &problem,
                                     double epsilon = 1e-5);

/// Cuts every sample alone into `slices` slices with equally many units of the grain,
/// up to one unit. A sample with fewer units has one slice for each. This is the
/// uniform baseline of TeraPipe (section 4.2). It is also the cut of SlimPipe, whose
/// exchange of attention context between stages is left out. O(slices of all samples).
StatusOr<SlicePlan> sliceUniformly(const SliceProblem &problem, int64_t slices);

/// Work of a layer, in any unit.
struct SliceWork {
  double perToken = 1; ///< Work of a token apart from attention.
  double perPair = 0;  ///< Work of a query and a key that it sees.
};

/// Cuts every sample alone into `slices` slices with nearly equal work, as Seq1F1B
/// does. Slice i ends at the multiple of the grain where the work so far is nearest to
/// i / slices of the sample's work. Every slice has at least one unit.
/// Fails also if work is negative or zero in sum. O(units of all samples).
StatusOr<SlicePlan> sliceByWork(const SliceProblem &problem, int64_t slices,
                                const SliceWork &work);

struct ChunkOptions {
  /// Tokens of a chunk, a multiple of the grain.
  int64_t tokens = 1;
  /// Chunks of a long sample, counted from its end, whose activations are kept.
  int64_t kept = 1;
  /// Mode of the earlier chunks of a long sample, which are computed again.
  int droppedMode = 0;
};

/// Puts the samples of at most `tokens` tokens into bundles of at most
/// `tokens`: longest first, each into the first bundle with room for it.
/// Returns the numbers of the samples of each bundle. O(samples * bundles).
std::vector<std::vector<int64_t>>
packBundles(const std::vector<int64_t> &lengths, int64_t tokens);

/// Cuts samples as ChunkFlow does. Samples with more tokens than a chunk are cut into
/// chunks, and the last one may be shorter. All others are packed (`packBundles`). The
/// bundles of the problem are not used. Fails also if there are short samples but no function for
/// costs of bundles. O(samples * bundles).
StatusOr<SlicePlan> sliceInChunks(const SliceProblem &problem,
                                  const ChunkOptions &chunks);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_SLICEBASELINES_H
