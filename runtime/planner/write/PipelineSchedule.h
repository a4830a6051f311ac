//===- PipelineSchedule.h - The order of work and messages of a replica ---===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A replica's stages each run a list of items: forward or backward of one
// micro-batch. The lists are fixed by the schedule; the times follow from
// estimated durations by running every item as soon as its stage is free and
// its input is there (PipelineTimes.h).
//
//     GPipe, 2 stages, 3 micro-batches    s0  F0 F1 F2          B0 B1 B2
//                                         s1     F0 F1 F2 B0 B1 B2
//
// Messages. Every rank starts its sends and receives in one global order: that
// of the time at which the data is there. Both ends of a channel therefore
// start the same messages in the same order, and nobody waits for something
// that is not produced before: a wait stands only in front of items that begin
// after the message's time, and the other end starts the message before any
// such item too. So no cycle of waits exists even if every send is a
// rendezvous. (DynaPipe, section 6, plans both ends together for that reason.)
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PIPELINESCHEDULE_H
#define DYNA_RUNTIME_PLANNER_PIPELINESCHEDULE_H

#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

/// A message from stage `from` to the stage behind it (an activation) or before
/// it (a gradient).
struct PipelineMessage {
  int from = 0, to = 0;
  int microBatch = 0;
  bool gradient = false;
  double time = 0; ///< when the sender has it
  /// When the receiver has come to it, between its items: before that, whoever
  /// waits for the send waits for the receiver.
  double taken = 0;
};

struct PipelineSchedule {
  StageOrders stages;
  std::vector<PipelineMessage> messages; ///< in the order all ranks start them
};

/// The order of `options.schedule`, without times. Without `backward` there are
/// forwards only. Fails where the schedule does. O(items), and what the schedule
/// takes.
StatusOr<StageOrders> orderItems(PipelineProblem problem,
                                 const PlanOptions &options, bool backward);

/// When items in these orders run, and the messages that follow from that. No
/// stage that evaluates gets more than two micro-batches (one, where every send
/// is waited for) ahead of the next one, so that memory does not grow with their
/// number. Fails where the orders of the stages wait for each other. O(items),
/// and a logarithm of the messages.
StatusOr<PipelineSchedule> orderMessages(StageOrders orders,
                                         const PipelineProblem &problem,
                                         const PlanOptions &options,
                                         bool backward);

/// Both. Orders that wait for each other are a fault of the schedule.
StatusOr<PipelineSchedule> schedulePipeline(const PipelineProblem &problem,
                                            const PlanOptions &options,
                                            bool backward);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PIPELINESCHEDULE_H
