//===- Batchings.h - How a mini-batch becomes micro-batches -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A batching says which samples of a mini-batch make a micro-batch, how long
// their segments are, and which replica runs it: one file in this folder defines
// its rule, one row of Batchings.def lists it, and everybody else (flags, options
// of passes, plans) reads the table. In which order a replica's micro-batches
// run is the schedule's business (schedules/Schedules.h).
//
// A segment that is longer than its sample is padded: the loader fills it up
// with tokens that are not in the loss and that no real token looks at.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_BATCHING_BATCHINGS_H
#define DYNA_RUNTIME_PLANNER_BATCHING_BATCHINGS_H

#include "runtime/plan/Plan.h"
#include "runtime/planner/PackForPipeline.h"

#include <string>
#include <vector>

namespace dyna {

enum class Batching {
#define DYNA_BATCHING(Id) Id,
#include "runtime/planner/batching/Batchings.def"
};

/// What a mini-batch is cut by. Lengths are neither negative nor above
/// `maxTokens`.
struct BatchingProblem {
  std::vector<int64_t> lengths;
  int stages = 1, replicas = 1;
  /// Of any micro-batch, padding included.
  int64_t maxTokens = 0;
  /// That a sample can have, and a row has that is as long as any.
  int64_t rowTokens = 0;
  /// Of a micro-batch of two samples or more; a sample above it is alone, and
  /// changes nothing for the others. For rules that take shares.
  int64_t shareTokens = 0;
  /// Cost of one pair of attention beside that of one token.
  double tokensPerPair = 0;
  /// On the slowest stage, as the table of costs says (StageTables.h).
  std::function<double(const RaggedShape &)> seconds;
};

using MicroBatches = std::vector<plan::MicroBatch>;

struct BatchingRule {
  const char *name;    ///< in flags and options
  const char *summary; ///< what follows the name in a list
  /// All micro-batches, those of a replica one after another, with a segment for
  /// every sample. Deterministic.
  StatusOr<MicroBatches> (*cut)(const BatchingProblem &);
  /// Whether it reads `shareTokens`, which is then searched.
  bool takesShares = false;
  /// Whether segments may be longer than their samples.
  bool pads = false;
  /// Whether samples are to be joined to rows before they are planned
  /// (`joinedSamples` in CutMiniBatch.h).
  bool joins = false;
};

const BatchingRule &ruleOf(Batching batching);

/// All of them, in the order of Batchings.def; the first is the default.
const std::vector<Batching> &allBatchings();

/// The names of all, in that order.
std::vector<std::string> batchingNames();

/// Fails with the names there are.
StatusOr<Batching> findBatching(const std::string &name);

/// For rules that deal micro-batches by the seconds they take
/// (BalanceReplicas.h): puts these samples into segments and replicas.
/// `pads`: all segments of a micro-batch are as long as its longest.
MicroBatches dealMicroBatches(const BatchingProblem &problem,
                              const MicroBatchPartition &partition, bool pads);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_BATCHING_BATCHINGS_H
