//===- Batchings.h - Lists batchings ----------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A batching decides which samples of a mini-batch make a micro-batch, how long
// their segments are, and which replica runs it. One file in this folder
// defines its rule, and one row of Batchings.def lists it. All other code
// (flags, options of passes, plans) reads the table. The schedule decides the
// order of a replica's micro-batches (schedules/Schedules.h).
//
// A segment that is longer than its sample is padded. The loader fills it with
// tokens that are not in the loss and that no real token sees.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_BATCHING_BATCHINGS_H
#define DYNA_RUNTIME_PLANNER_BATCHING_BATCHINGS_H

#include "runtime/plan/program/Plan.h"
#include "runtime/planner/cut/PackForPipeline.h"

#include <string>
#include <vector>

namespace dyna {

enum class Batching {
#define DYNA_BATCHING(Id) Id,
#include "runtime/planner/cut/batching/Batchings.def"
};

/// Input of a batching. Lengths are not negative.
struct BatchingProblem {
  std::vector<int64_t> lengths;
  int stages = 1, replicas = 1;
  /// Limit of a micro-batch of two or more samples, padding included. A longer
  /// sample is alone in its micro-batch, and changes nothing for the others.
  int64_t maxTokens = 0;
  /// Limit of the tokens of a row, unless one sample has more.
  int64_t rowTokens = 0;
  /// Returns the amount that a micro-batch holds of the limited resource, for
  /// rules that use shares of it. If memory is limited, these are bytes, on the
  /// stage that is nearest to its limit (HeldBytes in StageMemory.h). Otherwise
  /// they are tokens. One more sample, or a longer one, never holds less.
  std::function<int64_t(const Load &)> held;
  int64_t limit = 0; ///< largest amount that a micro-batch holds
  int64_t share = 0; ///< largest amount of two samples or more, as `maxTokens`
  /// Cost of one pair of attention beside that of one token.
  double tokensPerPair = 0;
  /// Seconds on the slowest stage, from the table of costs (StageTables.h).
  std::function<double(const Load &)> seconds;
};

using MicroBatches = std::vector<plan::MicroBatch>;

struct BatchingRule {
  const char *name;    ///< in flags and options
  const char *summary; ///< text after the name in a list
  /// All micro-batches, those of a replica one after another, with a segment for
  /// every sample. Deterministic.
  StatusOr<MicroBatches> (*cut)(const BatchingProblem &);
  /// True if it reads `share`, which is then searched.
  bool takesShares = false;
  /// True if segments may be longer than their samples.
  bool pads = false;
  /// True if samples must be joined to rows before planning (`joinedSamples` in
  /// CutMiniBatch.h).
  bool joins = false;
  /// A second cut that is tried beside `cut` in pipelines; null: none.
  StatusOr<MicroBatches> (*cutOtherwise)(const BatchingProblem &) = nullptr;
};

const BatchingRule &ruleOf(Batching batching);

/// Returns all batchings, in the order of Batchings.def; the first is the
/// default.
const std::vector<Batching> &allBatchings();

/// Returns the names of all batchings, in that order.
std::vector<std::string> batchingNames();

/// Fails with the names there are.
StatusOr<Batching> findBatching(const std::string &name);

/// Fails if samples are joined before planning. Then rows would go to
/// strategies by lengths, and all rows are about as long as the longest sample.
Status checkRanged(Batching batching);

/// Returns the problem's numbers for the algorithms that cut by shares.
PartitionOptions partitionOptions(const BatchingProblem &problem);
/// Returns `held` of a load, and the largest number if several samples have more than
/// `maxTokens`.
int64_t heldWithin(const BatchingProblem &problem, const Load &load);

/// Cuts the samples in order of length by DynaPipe's program (PartitionMicroBatches.h).
/// Seconds, bytes and the objective are those of padded micro-batches.
StatusOr<MicroBatchPartition> partitionByLength(const BatchingProblem &problem);

/// Assigns micro-batches to replicas by their seconds (BalanceReplicas.h), and
/// makes segments of their samples. `pads`: all segments of a micro-batch are
/// as long as its longest.
MicroBatches dealMicroBatches(const BatchingProblem &problem,
                              const MicroBatchPartition &partition, bool pads);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_BATCHING_BATCHINGS_H
