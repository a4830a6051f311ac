//===- ChooseSlices.h - Slices that costs find worth it ---------*- C++ -*-===//
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
  std::function<double(const Load &)> message;
};

/// Returns cuts of these micro-batches into slices that may be faster, for `--slices
/// auto`. Who calls compares them by the clock of their schedule, and with the
/// micro-batches as they are.
///
/// - The exact program of TeraPipe (slice/SliceTokens.h), for each replica. Its costs
///   are those of the slowest stage and of a message. Micro-batches of one sample are
///   sliced; others are whole. Slices are multiples of 1/64 of the longest sample, and of the rows that
///   memory is rounded to.
/// - Equal slices, 2, 4, 8 ... up to twice the number of stages. A micro-batch of
///   several samples is sliced too. They serve stages that differ, and schedules that
///   do not run all forwards first.
///
/// None has slices smaller than the rows that memory is rounded to. Returns nothing for
/// one stage. Fails only as `sliceTokens` does.
StatusOr<std::vector<MicroBatches>>
slicesByCost(const MicroBatches &microBatches, const SliceTimes &times,
             int replicas);

/// Returns the cut of a policy other than `None` and `Auto`. Micro-batches of several
/// samples stay whole; ChunkFlow makes its own. A policy that needs a number and has none
/// is tried with powers of two, chunks with `mostChunk` tokens, half as many, and so on.
/// The plan that is shortest by the formula of equal stages is taken. Fails as the function of the policy does
/// (slice/SliceTokens.h, slice/SliceBaselines.h).
StatusOr<MicroBatches> slicesByPolicy(const MicroBatches &microBatches,
                                      const SliceTimes &times, int replicas,
                                      const SliceChoice &choice,
                                      int64_t mostChunk);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CHOOSESLICES_H
