//===- SliceProblem.h - Describes samples to slice --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A sample passes a pipeline in slices: ranges of its tokens, in order. Attention of
// a slice reads the keys and values of earlier slices. So the cost of a slice depends
// on its tokens and on the tokens before it (TeraPipe, ICML'21, section 3.3).
//
//     sample of 10 tokens, grain 2      begin 0, 4 tokens | 4, 4 | 8, 2
//
// All stages are equal. With the forward and backward seconds f and b of every
// slice on one stage, `stages` stages take
//
//     sum (f + b) + (stages - 1) * (max f + max b)                         [s]
//
// if all forwards run before the backwards (GPipe). The order of the slices does
// not matter. `joinsDirections` selects the paper's equation 5 instead, with one
// cost t = f + b:
//
//     sum t + (stages - 1) * max t                                         [s]
//
// The second formula is a lower bound of the first one.
//
// Words of this room: a *cut* is the list of slices of one sample, or of several
// equal samples whose slices are joined. A *bundle* is a micro-batch of whole
// samples. A *mode* is one of several ways to run a slice, for example a mode of
// recomputation.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICE_SLICEPROBLEM_H
#define DYNA_RUNTIME_PLANNER_SLICE_SLICEPROBLEM_H

#include "runtime/base/error/Status.h"

#include <cstdint>
#include <functional>
#include <limits>
#include <vector>

namespace dyna {

/// A slice: the same tokens of `samples` equal samples.
struct SliceShape {
  int64_t samples = 1;
  int64_t begin = 0;  ///< Earlier tokens of each sample.
  int64_t tokens = 0; ///< Tokens of each sample in the slice.
  int mode = 0;
};

/// Cost of a slice or bundle on one stage.
struct SliceCost {
  double forward = 0;  ///< Seconds, transfer included; 0 to 1e18.
  double backward = 0; ///< Seconds, recomputation and transfer included.
  int64_t bytes = 0;   ///< Kept from forward to backward; 0 to 2^53.
};

/// Pure functions that say what slices and bundles cost. Nothing is assumed of them:
/// a longer slice may cost less.
struct SliceCosts {
  std::function<SliceCost(const SliceShape &)> slice;
  /// Returns the cost of whole samples with these lengths in one micro-batch.
  /// May be empty if there are no bundles.
  std::function<SliceCost(const std::vector<int64_t> &lengths, int mode)>
      bundle;
  /// Number of modes. Every slice and every bundle has a mode of its own, 0 to
  /// modes - 1.
  int modes = 1;
};

struct SliceOptions {
  int stages = 1;
  /// Slices are multiples of the grain. The last slice of a sample may be shorter.
  int64_t grain = 1;
  /// Selects the objective with one cost for both directions.
  bool joinsDirections = false;
  /// Largest number of equal samples whose slices are joined (section 3.4).
  int64_t mostJoined = 1;
  /// Limit for the tokens of a slice, all joined samples together.
  int64_t sliceTokens = std::numeric_limits<int64_t>::max();
  /// Limit for the bytes of each slice and of each bundle.
  int64_t sliceBytes = std::numeric_limits<int64_t>::max();
  /// Limit for the sum of the bytes of all slices and bundles.
  int64_t totalBytes = std::numeric_limits<int64_t>::max();
};

struct SliceProblem {
  /// Tokens of each sample, at least 1.
  std::vector<int64_t> lengths;
  /// Samples of each bundle. Samples in no bundle are sliced.
  std::vector<std::vector<int64_t>> bundles;
  SliceCosts costs;
  SliceOptions options;
};

struct TokenSlice {
  int64_t tokens = 0;
  int mode = 0;

  bool operator==(const TokenSlice &other) const {
    return tokens == other.tokens && mode == other.mode;
  }
};

/// The slices of one sample, or of several equal samples that are joined.
struct SampleCut {
  std::vector<int64_t> samples;
  std::vector<TokenSlice> slices;
};

struct SliceBundle {
  std::vector<int64_t> samples;
  int mode = 0;
};

struct SlicePlan {
  /// Every sample is in one cut or in one bundle.
  std::vector<SampleCut> cuts;
  std::vector<SliceBundle> bundles;
  // `timeSlices` writes all fields below.
  double sum = 0;             ///< Seconds of all slices and bundles, f + b.
  double largestForward = 0;  ///< Seconds.
  double largestBackward = 0; ///< Seconds.
  double largestTotal = 0;    ///< Largest f + b, in seconds.
  double objective = 0;       ///< Seconds of the pipeline, as the options say.
  int64_t bytes = 0;          ///< Kept by all slices and bundles.
  /// Number of caps, or pairs of caps, whose dynamic program was solved.
  int tried = 0;
  /// Seconds that a policy minimised. It differs from `objective` for the paper's
  /// program, which counts the fill of the pipeline once for each cut.
  double estimate = 0;
};

/// Fails with InvalidArgument if numbers of the problem are out of range or functions
/// are missing. Fails also if a bundle has a sample twice or one that does not exist.
Status checkSlices(const SliceProblem &problem);

/// Fails with InvalidArgument, with the shape, if seconds or bytes are out of range.
StatusOr<SliceCost> costOfSlice(const SliceProblem &problem,
                                const SliceShape &shape);
StatusOr<SliceCost> costOfBundle(const SliceProblem &problem,
                                 const std::vector<int64_t> &samples, int mode);

/// Returns the seconds of the pipeline. Monotone in every argument, after rounding
/// too.
inline double pipelineSeconds(int stages, double sum, double largest) {
  return sum + static_cast<double>(stages - 1) * largest;
}

/// Computes the seconds and bytes of a plan from its cuts and bundles. Fails with
/// InvalidArgument if the plan does not have every token of every sample once. Fails
/// also if joined samples differ in length or a slice is not a multiple of the grain.
/// Limits of memory are not compared: baselines may exceed them.
/// O(slices + samples).
Status timeSlices(const SliceProblem &problem, SlicePlan &plan);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICE_SLICEPROBLEM_H
