//===- ChooseSlices.h - Chooses slices by costs -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CHOOSESLICES_H
#define DYNA_RUNTIME_PLANNER_CHOOSESLICES_H

#include "runtime/planner/cut/SliceChoice.h"
#include "runtime/planner/cut/batching/Batchings.h"
#include "runtime/planner/estimate/StageTables.h"

#include <functional>
#include <vector>

namespace dyna {

/// Fails, with what to do, if micro-batches of the model cannot be cut into slices. They
/// may be padded, attention may not be causal, or its code may not keep keys.
Status checkSliceable(const Model &model, Batching batching);

/// Seconds of what slices take: stages by their tables, messages between stages by load.
struct SliceTimes {
  const StageTables &tables;
  /// Stages that differ: one of those with equal layers stands for all.
  std::vector<int> stages;
  std::function<double(const Load &)> message;
};

/// Tokens of the smallest chunk that `chunkflow` without a number is tried with.
constexpr int64_t leastChunk = 512;

/// A cut, and its seconds by the formula of equal stages (slice/SliceProblem.h).
struct TimedCut {
  MicroBatches cut;
  double seconds = 0; ///< of the slowest replica
  int slowest = 0;    ///< the slowest replica
};

/// Returns cuts of these micro-batches into slices that may be faster, for `--slices
/// auto`; those with the fewest seconds first. Who calls compares the first ones by the
/// clock of their schedule, and with the micro-batches as they are.
///
/// - The exact program of TeraPipe (slice/SliceTokens.h), for each replica. Its costs
///   are those of the slowest stage and of a message. Micro-batches of one sample are
///   sliced; others are whole. Slices are multiples of 1/64 of the longest sample, and of the rows that
///   memory is rounded to.
/// - The same with the fill of the pipeline counted four times. Its largest slices are
///   smaller. Samples that follow each other with gaps need them.
/// - Four cuts for each size of 1/2, 1/4, 1/8 ... of the largest micro-batch. Equal
///   slices cut micro-batches of several samples too. The others are chunks (ChunkFlow)
///   and both exact cuts after bundles of this size. Bundles that fill a pipeline alone
///   are larger than bundles that fill it together with slices.
///
/// None has slices smaller than the rows that memory is rounded to. Returns nothing for
/// one stage. Fails only as the programs do. About 25 cuts, each O(samples * bundles +
/// slices) and a program on one table of costs.
StatusOr<std::vector<TimedCut>> slicesByCost(const MicroBatches &microBatches,
                                             const SliceTimes &times,
                                             int replicas);

/// Returns the cut of a policy other than `None` and `Auto`. Micro-batches of several
/// samples stay whole; ChunkFlow makes its own. A policy that needs a number and has none
/// is tried with powers of two, chunks with `mostChunk` tokens, half as many, and so on.
/// The plan that is shortest by the formula of equal stages is taken. Slices of policies
/// without a number are multiples of 1/64 of the longest sample; those of others are cut to
/// the token. Fails as the function of the policy does
/// (slice/SliceTokens.h, slice/SliceBaselines.h).
StatusOr<MicroBatches> slicesByPolicy(const MicroBatches &microBatches,
                                      const SliceTimes &times, int replicas,
                                      const SliceChoice &choice,
                                      int64_t mostChunk);

/// A mode of recomputation: what slices and whole micro-batches take, and what they keep.
struct TimedMode {
  SliceTimes times;
  std::function<int64_t(const Load &)> bytes;
};
using ModeTimes = std::vector<TimedMode>;

/// Micro-batches of one replica, the mode of each, and the bytes that all of them keep.
struct ModeCut {
  MicroBatches microBatches;
  std::vector<int> modes;
  int64_t bytes = 0;
};

/// Cuts the micro-batches of a replica into slices, together with a mode for each slice
/// and each bundle, by the exact program (slice/SliceTokens.h). All of them together
/// keep at most `totalBytes`. Slices are multiples of 1/16 of the longest sample. Fails
/// as `sliceTokens` does.
StatusOr<ModeCut> sliceWithModes(const MicroBatches &microBatches, int replica,
                                 const ModeTimes &modes, int64_t totalBytes);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CHOOSESLICES_H
