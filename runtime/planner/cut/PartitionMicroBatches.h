//===- PartitionMicroBatches.h - Cuts padded micro-batches ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// DynaPipe (EuroSys'24), section 4. Samples stand in an order (OrderSamples.h)
// and are cut into runs. Each run is a micro-batch in which every sample is
// padded to the longest. Finds the cut within the memory limits that has the
// smallest
//
//     (stages - 1) * max t + sum t / replicas                            [s]
//
// These are the time in which a pipeline fills and drains, and the share of a
// replica in the work.
//
//     order    5   9 | 40  42  60 | 300        three micro-batches of 2x9, 3x60
//                                              and 1x300 tokens
//
// `t` is the time of the *slowest stage* for the micro-batch, in both terms:
// forward, backward and recomputation. With equal stages, which the paper
// assumes, this is its `t`. With unequal stages both terms are upper bounds.
// They are tight in the important cases. A steady pipeline moves at the pace of
// its slowest stage; the bound is exact if the same stage is the slowest for
// all micro-batches. A micro-batch passes the other stages-1 stages in at most
// stages-1 times t. The sum over all stages, or their mean, would let a cut
// hide a slow stage behind fast ones.
//
// Method. F(T) is the smallest sum of all cuts with t <= T. The paper's dynamic
// program over the ends of runs finds it. F never rises with T. So the program
// of a bound B
// also rules out bounds below B: no cut whose largest t is from
//
//     (best - F(B) / replicas) / (stages - 1)
//
// to B is better than the best so far. Programs just below that point sweep the
// bounds, and some in the middle of what is left find a good cut early. The paper,
// and the authors' code, try bounds at fixed distances instead. They can miss the
// optimum by as much.
//
// Exact, in double precision too: sums are taken from the first micro-batch to the
// last. No cut has an objective that is smaller by a bit. No order of samples is
// assumed.
//
// One program is O(n w) for runs of up to w samples that pass both bounds. In
// practice it reads about 40 runs a sample. Blocks of runs are skipped by
// bounds of their own. Only runs in other blocks are asked for their costs
// (PaddedRuns.h). The number of programs can grow with the number of different
// t; docs/planner.md has the numbers for real lengths. Memory: O(n w) doubles,
// less where equal lengths stand together or blocks are skipped.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PARTITIONMICROBATCHES_H
#define DYNA_RUNTIME_PLANNER_PARTITIONMICROBATCHES_H

#include "runtime/base/error/Status.h"
#include "runtime/planner/cut/PaddedCosts.h"

#include <cstdint>
#include <limits>
#include <vector>

namespace dyna {

struct PartitionOptions {
  int stages = 1;
  /// Replicas that share the work equally in the objective. The objective does
  /// not require as many micro-batches as replicas; with one stage the limits
  /// must ensure it.
  int replicas = 1;
  /// Bytes of a micro-batch of two samples or more: the share of the limit that
  /// the schedule leaves to one (1/stages under 1F1B; section 4).
  int64_t shareBytes = std::numeric_limits<int64_t>::max();
  /// Bytes of any micro-batch. A sample above the share, but not above this, is
  /// a micro-batch of its own; the share of all others stays what it is.
  int64_t limitBytes = std::numeric_limits<int64_t>::max();
  /// Number of which the ragged micro-batches (`packForPipeline`) are a
  /// multiple, if there are enough samples. So the replicas share them evenly.
  int multipleOf = 1;
};

/// Checks that all three numbers are positive.
Status checkPipeline(const PartitionOptions &options);

struct MicroBatchPartition {
  /// Samples of each micro-batch, in the order that was given.
  std::vector<std::vector<int64_t>> microBatches;
  /// Seconds of each.
  std::vector<double> seconds;
  /// (stages - 1) * max t + sum t / replicas.
  double objective = 0;
  /// Dynamic programs that were solved; when packing, numbers of bins tried.
  int tried = 0;
};

/// `lengths[sample]` cut in `order`, a permutation of the samples. Deterministic;
/// of cuts with equal sums longer runs are preferred. Fails where a sample alone
/// is above `limitBytes` (ResourceExhausted, naming it), where lengths are
/// negative or costs are not what `PaddedCosts` asks for.
StatusOr<MicroBatchPartition> partitionMicroBatches(
    const std::vector<SampleLength> &lengths, const std::vector<int64_t> &order,
    const PaddedCosts &costs, const PartitionOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PARTITIONMICROBATCHES_H
