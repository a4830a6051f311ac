//===- CommandLine.h - Flags of a compiled binary ---------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// Every flag stands in one table (CommandLine.cpp): name, value, range, help.
// The table parses the command line, prints --help, and writes the arguments
// that a checkpoint stores, so that `--resume DIR` alone continues the same
// run.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRAIN_COMMANDLINE_H
#define DYNA_RUNTIME_TRAIN_COMMANDLINE_H

#include "runtime/base/Status.h"
#include "runtime/planner/Policy.h"

#include <cstdint>
#include <set>
#include <string>
#include <vector>

namespace dyna {

/// That a run can have.
constexpr int64_t mostSteps = 1000000000000;

struct TrainOptions {
  // What to do.
  bool help = false;
  bool version = false;
  bool evaluate = false;
  std::string describe; ///< "", "table", "json" or "proto"

  // Data.
  std::vector<std::string> data;
  std::vector<std::string> heldOut;
  double heldOutFraction = 0;
  int64_t heldOutTokens = 262144;
  std::string longDocuments = "split";
  std::string shuffle = "samples";
  bool pad = false;
  bool allowChangedData = false;

  // Steps.
  int64_t steps = 100;
  int64_t tokensPerBatch = defaultTokensPerBatch;
  int64_t tokensPerMicroBatch = 0; ///< 0: chosen by the policy
  int64_t inFlight = 0;            ///< 0: chosen by the policy
  int64_t planAhead = 2;
  bool splitBackward = false;
  std::string recompute; ///< empty: the strategy's word, or none
  int64_t seed = 1;

  // Ranks.
  std::string strategy;  ///< "dp=2,pp=2"; empty: one rank
  int64_t ranks = 0;     ///< 0: as many as the strategy has
  int64_t timeout = 600; ///< seconds
  std::string pipeline = scheduleNames().front();
  std::string costs; ///< file; empty: estimates

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
  int64_t skipNonfinite = 0;

  // Files.
  std::string metrics;
  std::string trace;
  int64_t traceSteps = 10;
  std::string save;
  std::string saveEvery = "10min"; ///< see SaveSchedule::parse
  int64_t keep = 2;
  std::string resume;
  std::string load;
  std::string gradNorms;
  std::string counts;

  // Machine.
  int64_t threads = 0;
  std::string isa;
  std::string memoryLimit; ///< "4GiB"
  bool progress = false;
  bool noProgress = false;
  bool checkMemory = false;

  /// Names of the flags that were given.
  std::set<std::string> given;
  bool isGiven(const std::string &name) const { return given.count(name) > 0; }
};

/// Parses `arguments` into `options`, on top of what is there. The failure is
/// one line that names the flag and what it expects.
Status parseCommandLine(const std::vector<std::string> &arguments,
                        TrainOptions &options);

/// The arguments that a checkpoint has stored, `runArguments` of its run.
/// Whoever made the checkpoint must not choose what is overwritten here: paths
/// for writing are passed over, flags that no checkpoint stores are an error.
Status parseStoredArguments(const std::vector<std::string> &arguments,
                            TrainOptions &options);

/// The stored value of a flag, "" if there is none: to be shown, not obeyed.
std::string storedValue(const std::vector<std::string> &arguments,
                        const std::string &name);

/// Whether two flags were given that exclude each other: said before any file
/// is looked at.
Status checkExclusions(const TrainOptions &options);

/// Whether the flags fit together; fills in the defaults that depend on others.
Status resolveOptions(TrainOptions &options);

/// Steps after which the schedule has ended.
int64_t scheduleLength(const TrainOptions &options);

/// The arguments that make a run what it is, with absolute paths: what a
/// checkpoint stores.
std::vector<std::string> runArguments(const TrainOptions &options);

/// Flags whose values differ between the runs and that change its numbers.
std::vector<std::string> changedFlags(const TrainOptions &before,
                                      const TrainOptions &after);

/// Flags that processes of one job need alike, with their values as text: those
/// that a checkpoint stores, but for paths and threads.
std::vector<std::pair<std::string, std::string>>
commonFlags(const TrainOptions &options);

/// Bytes of "4GiB", "512M", "1000000"; InvalidArgument for anything else.
StatusOr<int64_t> parseBytes(const std::string &text);

std::string helpText(const std::string &program);

} // namespace dyna

#endif // DYNA_RUNTIME_TRAIN_COMMANDLINE_H
