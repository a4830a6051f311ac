//===- PlanRequest.h - Holds a user's request for plans ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Values of the planning words (PlanningWords.h), and the request that the policy reads.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLANREQUEST_H
#define DYNA_RUNTIME_PLANNER_PLANREQUEST_H

#include "runtime/plan/model/Strategy.h"

#include <cstdint>
#include <string>

namespace dyna {

/// Default number of tokens in one optimizer step.
constexpr int64_t defaultTokensPerBatch = 16384;
/// Four times the steps of the largest models. A mini-batch is planned as a whole, and
/// its micro-batches and instructions have 32-bit numbers. Larger ones would be planned
/// for hours.
constexpr int64_t maxTokensPerBatch = INT64_C(1) << 28;
/// Largest number of micro-batches that a user can put in flight.
constexpr int64_t maxInFlight = 1024;

/// Words that the planner's policy reads. Empty and 0 leave the choice to the policy.
struct RequestWords {
  std::string pipeline;     ///< name of a schedule
  std::string microBatches; ///< name of a batching
  /// Text for `parseRecompute`, or "auto"; empty: the mode of the strategy.
  std::string recompute;
  /// Approximate number of tokens in a step, over all replicas.
  int64_t tokensPerBatch = defaultTokensPerBatch;
  int64_t tokensPerMicroBatch = 0;
  int64_t inFlight = 0;
  bool splitBackward = false;
  std::string slices; ///< text for `parseSlices`; empty: `choosePolicy` chooses
};

/// Values of all planning words. A run, a tool or a pass keeps those that it has.
struct PlanningValues : RequestWords {
  std::string
      rankMemory; ///< "512MiB"; empty: the default of the tool's machine
  std::string mergeRanges = "auto";
  std::string strategy;   ///< "dp=2,pp=2"; empty: one rank
  std::string strategies; ///< "a: dp=2; b: tp=2"
  std::string ranges;     ///< "a: 0-1024; b: 1025-"; empty: one strategy
  std::string costs;      ///< file; empty: estimates
  std::string cluster;    ///< described devices; empty: not given
  int64_t ranks = 0;      ///< 0: not given
};

/// Input of `choosePolicy`.
struct PlanRequest : RequestWords {
  Strategy strategy; ///< with or without the layers of its stages
  /// Lower limit of a chosen micro-batch, if known. If the size of micro-batches is
  /// given, a longer sample is alone in its micro-batch.
  int64_t longestSample = 0;
  bool norms = true; ///< as in PlanOptions
  /// True if the same was requested before for other micro-batches. The policy then
  /// does not repeat notes on missing costs.
  bool isAgain = false;
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLANREQUEST_H
