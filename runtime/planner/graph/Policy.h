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
  /// Of one replica in one step, if all are full.
  int64_t microBatches = 1;
  /// What was chosen, and what is not used: for people.
  std::vector<std::string> notes;
};

/// Returns the words of `takeWords`, and how they are joined: the text behind "named by".
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

/// Fails where what is asked for does not exist, or does not fit the model or
/// itself; `costs` is that of the model.
///
/// Micro-batches, unless their size is given, have 4096 tokens, which keep
/// matrix products busy (more only cost memory); in a pipeline they are smaller,
/// so that there are four for each stage, but never smaller than the model's
/// longest sample. Samples may have as many tokens as the model has positions,
/// or the longest one; what memory leaves of that is for the caller to say. One
/// stage works in windows of `inFlight` micro-batches. If the request leaves slices
/// open, they are `auto` under a schedule that goes by costs, and else `none`. They
/// are `none`, too, if the model or its micro-batches cannot be sliced, or if costs
/// know no device but the built-in one.
StatusOr<Policy> choosePolicy(const CostModel &costs, PlanRequest request);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_POLICY_H
