//===- PhaseEstimate.h - Estimates a phase under a strategy -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Choosing the strategy of samples needs hundreds of estimates per step, and a
// search of strategies needs millions. That is far too many for plans. So a
// phase (the micro-batches of one graph in a step) is estimated from sums over
// its samples. There are `n` equal micro-batches on `d` replicas. `t` is the
// seconds of one on the slowest stage. `path` is its seconds on all stages and
// between them. The estimate is
//
//     max(n t / d + path - t, path of the longest sample) + reduction
//
// These are the bounds of PipelineBounds.h, for micro-batches that are equal
// except for the longest sample. `n` minimizes the estimate, among numbers that
// keep micro-batches within the options' tokens and memory. Slices of tokens
// are micro-batches too, and a long sample has several on one replica. With `w`
// seconds of the longest sample's slices on the slowest stage,
//
//     max(n t / d, w) + path - t + reduction
//
// `reduction` is the part of the gradients' exchange that the last backward
// does not hide. Padding, uneven packing, and the gaps that a schedule fills
// are left out. docs/planner.md compares the estimate with simulated plans.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PHASEESTIMATE_H
#define DYNA_RUNTIME_PLANNER_PHASEESTIMATE_H

#include "runtime/planner/estimate/StageTables.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

namespace dyna {

/// Lengths of a phase's samples, without the samples themselves.
struct PhaseLengths {
  static constexpr int kClasses = 41;
  /// Returns the class c of samples of 2^c to 2^(c+1) - 1 tokens.
  static int classOf(int64_t tokens) {
    int c = 0;
    while (c + 1 < kClasses && tokens >> (c + 1) > 0)
      ++c;
    return c;
  }

  Load load;           ///< of all samples together
  int64_t longest = 0; ///< tokens
  /// Tokens by class of samples.
  std::array<int64_t, kClasses> tokensOf{};

  void add(int64_t tokens) {
    load += loadOfSample(tokens);
    longest = std::max(longest, tokens);
    tokensOf[classOf(tokens)] += tokens;
  }
  void add(const PhaseLengths &other) {
    load += other.load;
    longest = std::max(longest, other.longest);
    for (int c = 0; c < kClasses; ++c)
      tokensOf[c] += other.tokensOf[c];
  }
};

class PhaseEstimate {
public:
  /// Prepares estimates of training steps planned with `options`, for samples
  /// of at most `options.mostTokens()` tokens. O(layers + log^2 tokens) costs.
  PhaseEstimate(const ExecutableGraph &graph, const CostModel &costs,
                const PlanOptions &options);
  /// Makes an estimate with existing tables of the same degrees and options.
  /// For graphs that differ in the numbering of ranks or in the ranks that
  /// update.
  PhaseEstimate(const ExecutableGraph &graph, const CostModel &costs,
                const PlanOptions &options,
                std::shared_ptr<const StageTables> tables);

  /// Returns the seconds of a phase, and 0 without samples. O(log samples).
  double seconds(const PhaseLengths &lengths) const {
    return seconds(lengths, mostTokens_, /*inFlight=*/0, heldTokens_);
  }
  /// Returns the seconds if micro-batches of several samples have at most `mostTokens`
  /// tokens. A replica holds at most `inFlight` micro-batches at a time in the mean, and
  /// slices of `heldTokens` tokens; 0: any number.
  double seconds(const PhaseLengths &lengths, int64_t mostTokens,
                 double inFlight = 0, int64_t heldTokens = 0) const;
  /// Returns true if there may be slices.
  bool slices() const { return slices_.any(); }
  /// Returns the seconds of the update after the last phase, for the graph that
  /// runs it.
  double updateSeconds() const { return updateSeconds_; }
  /// Returns the seconds until each rank has the rows that others updated, with
  /// ZeRO.
  double gatherSeconds() const { return gatherSeconds_; }
  /// Returns the seconds of the reductions that no backward can hide.
  double lastReductionSeconds() const { return lastReduction_; }
  const std::shared_ptr<const StageTables> &tables() const { return tables_; }

private:
  double pathSeconds(const Load &load) const;
  double pipelineSeconds(const PhaseLengths &lengths, int64_t perReplica,
                         double inFlight) const;
  double wholeSeconds(const PhaseLengths &lengths, int64_t mostTokens,
                      double inFlight) const;
  double slicedSeconds(const PhaseLengths &lengths, int64_t mostTokens,
                       int64_t heldTokens) const;
  double slicedPipeline(const PhaseLengths &lengths, int64_t perReplica,
                        int64_t heldTokens) const;
  /// Returns the seconds of the reduction beside a pipeline that ends with such a load.
  double reductionBehind(const Load &last) const {
    return std::max(lastReduction_,
                    reductionSeconds_ - tables_->backward(0, last));
  }

  std::shared_ptr<const StageTables> tables_;
  int stages_, replicas_;
  SliceChoice slices_;     ///< none if nothing can be sliced
  int64_t mostTokens_ = 0; ///< of a micro-batch of several samples
  int64_t heldTokens_ = 0; ///< of slices at a time; 0: any number
  double messageSeconds_, messageSecondsPerToken_; ///< of all stages, both ways
  double reductionSeconds_ = 0, lastReduction_ = 0, updateSeconds_ = 0;
  double gatherSeconds_ = 0;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PHASEESTIMATE_H
