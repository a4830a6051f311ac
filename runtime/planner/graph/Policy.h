//===- Policy.h - Derives the options of plans from a request ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Users give a strategy, names and limits, or leave them open; a planner needs numbers.
// Only this file fills the gaps, so that a training binary, `dynac --stop-after=plan`
// and `dyna-opt --dyna-plan` make the same plans of the same requests. The compiler gets
// the lengths of one mini-batch. So their sum is its default for `tokensPerBatch`, and
// the longest of them is `longestSample`. A binary has its flag or its default, and does
// not know the longest sample. If tokens per batch and per micro-batch are both given,
// the plans agree.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_POLICY_H
#define DYNA_RUNTIME_PLANNER_POLICY_H

#include "runtime/planner/graph/PartitionLayers.h"
#include "runtime/planner/request/PlanOptions.h"
#include "runtime/planner/request/PlanRequest.h"

#include <string>
#include <vector>

namespace dyna {

struct Policy {
  Strategy strategy; ///< with the layers of its stages
  PlanOptions options;
  /// Micro-batches of one replica in one step, if all are full.
  int64_t microBatches = 1;
  /// Choices that were made and options that are not used, for people.
  std::vector<std::string> notes;
};

/// Returns the words of `takeWords`, and how they are joined: the text after
/// "named by".
std::string knownWords();

/// Sets what words ask for: a schedule, a batching, or slices (`parseSlices`, without
/// lists of tokens). Words are joined by '+'. Fails with the known words, or if two
/// words are of one kind.
Status takeWords(const std::string &words, PlanRequest &request);

/// Sets how many micro-batches are in flight under `options.schedule`: `wished`,
/// or, where that is 0, enough for a step of so many. One stage has the schedule
/// that works in windows. Leaves a note where the wish is not used.
void setInFlight(PlanOptions &options, int64_t wished, int stages,
                 int64_t microBatches, std::vector<std::string> &notes);

/// Returns true if the request asks for two ranks on each device (Chimera).
bool isMirrored(const PlanRequest &request);

/// Chooses a policy for a request. Fails if the request names something
/// unknown, or contradicts the model or itself. `costs` belongs to the model.
/// Defaults:
///
/// - Micro-batches have 4096 tokens, which keep matrix products busy; more
///   would only cost memory. In a pipeline they are smaller, so that there are
///   four for each stage, but never smaller than the model's longest sample.
/// - Samples may have as many tokens as the model has positions, or as the
///   longest one. The caller applies the memory limit.
/// - Chimera gives the strategy a mirrored replica beside each of its own.
/// - One stage works in windows of `inFlight` micro-batches.
/// - Slices are `auto` under a schedule that follows costs, else `none`. They
///   are `none`, too, if the model or its micro-batches cannot be sliced, or if
///   costs know no device but the built-in one.
StatusOr<Policy> choosePolicy(const CostModel &costs, PlanRequest request);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_POLICY_H
