//===- CutMiniBatch.h - Cuts a mini-batch into micro-batches ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CUTMINIBATCH_H
#define DYNA_RUNTIME_PLANNER_CUTMINIBATCH_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

/// Cuts a mini-batch by the rule of `options.batching`, for training or for
/// losses alone.
///
/// Some rules use a share of a micro-batch's limit. The limit is bytes of a
/// stage if a training step's memory is limited, else tokens. Then several
/// shares are tried, from the whole downwards (DynaPipe, section 4: 1 to 1 /
/// the number of micro-batches). The cut whose slowest replica ends first is
/// returned. The schedule gives its time, in each rank's memory, without the
/// schedule's search for the best order. No replica is left without a
/// micro-batch while another has two or more samples.
///
/// Fails, and names the sample, if a sample has too many tokens, or alone keeps
/// more bytes than there are (ResourceExhausted). Fails if the rule pads but
/// attention is not causal, because real tokens would see padding. O(shares *
/// (the rule's + micro-batches * stages)), with 1 to about 12 shares.
StatusOr<std::vector<plan::MicroBatch>>
cutMiniBatch(const ExecutableGraph &graph, const CostModel &costs,
             const std::vector<int64_t> &lengths, const PlanOptions &options,
             bool trains);

/// Tokens of the longest sample that `options` and the model allow.
int64_t longestSample(const Model &model, const PlanOptions &options);

/// Returns the samples of each row with attention across samples, if the
/// batching joins samples before planning. Empty otherwise. Rows are as long as
/// the model's positions and a micro-batch of several samples allow. A longer
/// sample is a row of its own.
std::vector<std::vector<int64_t>>
joinedSamples(const Model &model, const std::vector<int64_t> &lengths,
              const PlanOptions &options);

/// Returns the lengths that are planned then: tokens of each row, or the given
/// lengths.
std::vector<int64_t> joinedLengths(const Model &model,
                                   const std::vector<int64_t> &lengths,
                                   const PlanOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CUTMINIBATCH_H
