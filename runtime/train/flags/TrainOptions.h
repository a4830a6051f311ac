//===- TrainOptions.h - Holds the values of all flags of a run --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_TRAINOPTIONS_H
#define DYNA_RUNTIME_TRAIN_TRAINOPTIONS_H

#include "runtime/planner/graph/Policy.h"
#include "runtime/planner/request/PlanRequest.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace dyna {

/// Largest number of steps of a run.
constexpr int64_t mostSteps = 1000000000000;

struct TrainOptions : PlanningValues {
  TrainOptions() { microBatches = batchingNames().front(); }

  // Mode of the program.
  bool help = false;
  bool version = false;
  bool evaluate = false;
  std::string writeLengths; ///< a file; empty: not asked for
  std::string describe;     ///< "", "table", "json" or "proto"

  // Data.
  std::vector<std::string> data;
  std::vector<std::string> heldOut;
  double heldOutFraction = 0;
  int64_t skipBadLines = 0;
  std::string fields; ///< see LineFields.h; empty: those of the forms
  int64_t heldOutTokens = 262144;
  int64_t evaluateEvery = 0; ///< steps; 0: only at start and end
  std::string longDocuments = "split";
  std::string shuffle = "samples";
  bool pad = false;
  bool allowChangedData = false;

  // Steps.
  int64_t steps = 100;
  /// `tokensPerMicroBatch`, or the size that the policy chose for home. It is
  /// no flag: a chosen size must not bind a run that is resumed under other
  /// strategies.
  int64_t chosenMicroBatch = 0;
  int64_t planAhead = 2;
  int64_t planThreads = 1;
  std::string store;      ///< "redis://host:6379"; empty: plans stay here
  int64_t storeRetry = 0; ///< seconds
  std::string planOnly;   ///< "I/N"; empty: trains
  int64_t seed = 1;

  // Ranks.
  std::string repack; ///< see RepackList.h; without entries that are done
  std::string freeze; ///< see FreezeList.h; without events that are done
  std::string release = "wait"; ///< what freed ranks do; or "exit"
  std::string rebalance;        ///< see RebalanceFlag.h; empty: layers stay
  int64_t timeout = 600;        ///< seconds
  std::string profile;          ///< file of costs to measure; empty: none
  int64_t profileSeconds = 300;

  // Optimizer.
  double learningRate = 3e-4;
  double minLearningRate = -1; ///< -1: a tenth of the learning rate
  int64_t warmup = -1;         ///< -1: a tenth of the schedule, at most 100
  std::string schedule = "cosine";
  int64_t scheduleSteps = 0; ///< 0: as many as steps
  double weightDecay = 0.1;
  double beta1 = 0.9;
  double beta2 = 0.95;
  double epsilon = 1e-8;
  double clip = 1;
  bool noGradientNorm = false;
  int64_t skipNonfinite = 0;
  std::string prune;     ///< see PruneFlag.h; empty: nothing is pruned
  double sparseFrom = 0; ///< share of zeros; 0: by the compute type

  // Files.
  std::string metrics;
  std::string trace;
  int64_t traceSteps = 10;
  std::string save;
  std::string saveEvery = "10min"; ///< see SaveSchedule::parse
  int64_t keep = 2;
  bool removeFirst = false;          ///< see CheckpointStore::removeFirst
  std::string maxShardSize = "5GiB"; ///< see shardBytesOf
  std::string resume;
  std::string load;
  std::string gradNorms;
  std::string counts;
  std::string dumpPlans; ///< a folder
  std::string plans;     ///< a folder; empty: plans are made

  // Machine.
  int64_t threads = 0;
  int64_t device = 0; ///< index among several devices of a kind
  bool tf32 = false;
  std::string algorithms; ///< a file; empty: none are timed
  bool deterministic = false;
  std::string attention = "own"; ///< or "cudnn"
  std::string isa;
  std::string memoryLimit; ///< "4GiB"
  bool progress = false;
  bool noProgress = false;
  bool checkMemory = false;

  /// Names of the flags that were given.
  std::set<std::string> given;
  bool isGiven(const std::string &name) const { return given.count(name) > 0; }
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_TRAINOPTIONS_H
