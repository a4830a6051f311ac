//===- Policy.h - What is asked of plans becomes their options -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Users say a strategy, names and limits, or leave them open; a planner wants
// numbers. What fills the gaps is here alone, so that a training binary, `dynac
// --stop-after=plan` and `dyna-opt --dyna-plan` make the same plans of the same
// requests. Words alone are not yet one: the compiler, which is given the lengths
// of one mini-batch, takes their sum for `tokensPerBatch` where nobody says it, and
// the longest of them for `longestSample`; a binary takes its flag or its default,
// and knows no longest sample. Where tokens per batch and per micro-batch are both
// given, they agree.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_POLICY_H
#define DYNA_RUNTIME_PLANNER_POLICY_H

#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/request/PlanOptions.h"

#include <string>
#include <vector>

namespace dyna {

/// Tokens of one optimizer step where nobody says.
constexpr int64_t defaultTokensPerBatch = 16384;
/// Four times what the largest models are trained with. A mini-batch is planned
/// as a whole, whose micro-batches and instructions have 32-bit numbers, and
/// larger ones would be planned for hours.
constexpr int64_t maxTokensPerBatch = INT64_C(1) << 28;

/// Empty and 0 leave to the policy what they stand for.
struct PlanRequest {
  Strategy strategy;        ///< with or without the layers of its stages
  std::string pipeline;     ///< name of a schedule
  std::string microBatches; ///< name of a batching
  /// As for `parseRecompute`, or "auto"; else the strategy's word.
  std::string recompute;
  int64_t tokensPerBatch = defaultTokensPerBatch; ///< of all replicas, about
  int64_t tokensPerMicroBatch = 0;
  /// What a chosen micro-batch takes at least, where it is known; one whose
  /// size is given has a longer sample alone.
  int64_t longestSample = 0;
  int64_t inFlight = 0;
  bool splitBackward = false;
  bool norms = true; ///< PlanOptions'
  /// It was asked before, for other micro-batches: what costs lack is known.
  bool isAgain = false;
};

struct Policy {
  Strategy strategy; ///< with the layers of its stages
  PlanOptions options;
  /// Of one replica in one step, if all are full.
  int64_t microBatches = 1;
  /// What was chosen, and what is not used: for people.
  std::vector<std::string> notes;
};

/// The words that stand for a batching or a schedule, and how two of them are
/// joined: what follows "named by".
std::string knownWords();

/// Sets what words ask for that stand for a schedule or a batching; two are
/// joined by '+'. Fails with the words there are, or where two are of one table.
Status takeWords(const std::string &words, PlanRequest &request);

/// Sets how many micro-batches are in flight under `options.schedule`: `wished`,
/// or, where that is 0, enough for a step of so many. One stage has the schedule
/// that works in windows. Leaves a note where the wish is not used.
void setInFlight(PlanOptions &options, int64_t wished, int stages,
                 int64_t microBatches, std::vector<std::string> &notes);

/// Fails where what is asked for does not exist, or does not fit the model or
/// itself; `costs` is that of the model.
///
/// Micro-batches, unless their size is given, have 4096 tokens, which keep
/// matrix products busy (more only cost memory); in a pipeline they are smaller,
/// so that there are four for each stage, but never smaller than the model's
/// longest sample. Samples may have as many tokens as the model has positions,
/// or the longest one; what memory leaves of that is for the caller to say. One
/// stage works in windows of `inFlight` micro-batches.
StatusOr<Policy> choosePolicy(const CostModel &costs, PlanRequest request);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_POLICY_H
