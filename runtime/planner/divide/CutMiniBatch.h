//===- CutMiniBatch.h - Micro-batches of a mini-batch -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_CUTMINIBATCH_H
#define DYNA_RUNTIME_PLANNER_CUTMINIBATCH_H

#include "runtime/cost/CostModel.h"
#include "runtime/plan/graph/ExecutableGraph.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

/// By the rule of `options.batching`, for training or for losses alone. Where
/// the rule takes shares of what a micro-batch may have (bytes of a stage where a
/// training step's memory is limited, else tokens), several are tried, from
/// all of it down (DynaPipe, section 4: 1 to 1 / the number of micro-batches),
/// and the cut with which the slowest replica is done first is taken. Its time
/// is that of the schedule, without a search for the best order where the
/// schedule has one, in each rank's memory. However short, no replica is left
/// without a micro-batch while another has two or more samples.
///
/// Fails where a sample has more tokens than one may, or alone keeps more bytes
/// than there are (ResourceExhausted), naming it, and where the rule pads but
/// attention is not causal, so that real tokens would look at padding. O(shares *
/// (the rule's + micro-batches * stages)), with 1 to about 12 shares.
StatusOr<std::vector<plan::MicroBatch>>
cutMiniBatch(const ExecutableGraph &graph, const CostModel &costs,
             const std::vector<int64_t> &lengths, const PlanOptions &options,
             bool trains);

/// Tokens of the longest sample that `options` and the model allow.
int64_t longestSample(const Model &model, const PlanOptions &options);

/// Which samples are one row with attention across, where the batching joins
/// samples before they are planned; empty where it does not. Rows are as long as
/// the model's positions and a micro-batch of several samples allow, and a longer
/// sample is one of its own.
std::vector<std::vector<int64_t>>
joinedSamples(const Model &model, const std::vector<int64_t> &lengths,
              const PlanOptions &options);

/// What is planned then: tokens of each row, or the lengths as they are.
std::vector<int64_t> joinedLengths(const Model &model,
                                   const std::vector<int64_t> &lengths,
                                   const PlanOptions &options);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_CUTMINIBATCH_H
