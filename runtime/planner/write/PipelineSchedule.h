//===- PipelineSchedule.h - Orders work and messages ----------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every stage of a replica runs a list of items: forward or backward of one
// micro-batch. The schedule fixes the lists. The times follow from estimated
// durations: an item runs as soon as its stage is free and its predecessors have ended
// (StageGraph.h, PipelineTimes.h).
//
//     GPipe, 2 stages, 3 micro-batches    s0  F0 F1 F2          B0 B1 B2
//                                         s1     F0 F1 F2 B0 B1 B2
//
// Messages. Every rank starts its sends and receives in one global order: by the
// time at which the data is ready. So both ends of a channel start the same
// messages in the same order. A wait stands only in front of items that begin
// after the message's time. The other end starts the message before any such item
// too. So no cycle of waits exists, even if every send is a rendezvous. DynaPipe,
// section 6, plans both ends together for the same reason.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PIPELINESCHEDULE_H
#define DYNA_RUNTIME_PLANNER_PIPELINESCHEDULE_H

#include "runtime/planner/estimate/StageCosts.h"
#include "runtime/planner/order/schedules/StageGraph.h"
#include "runtime/planner/request/PlanOptions.h"

#include <vector>

namespace dyna {

/// A message between stages: the activation of an edge for its consumer, or the
/// gradient for its producer.
struct PipelineMessage {
  int from = 0, to = 0;
  int edge = -1;
  int microBatch = 0;
  bool gradient = false;
  double time = 0; ///< time at which the sender has the data
  /// Time at which the receiver reaches it, between its items. Until then a wait for
  /// the send waits for the receiver.
  double taken = 0;
};

struct PipelineSchedule {
  StageOrders stages;
  StageGraph graph;                      ///< predecessors of the items
  std::vector<PipelineMessage> messages; ///< in the order all ranks start them
};

/// Orders items by `options.schedule`, without times. Without `backward` there are
/// only forwards. Fails if the schedule fails. O(items) beside the schedule.
StatusOr<StageOrders> orderItems(PipelineProblem problem,
                                 const PlanOptions &options, bool backward);

/// Computes the times of items in these orders, and the messages that follow. A
/// stage that evaluates is at most two micro-batches ahead of the next stage, or one
/// if every send is waited for. So memory does not grow with the number of
/// micro-batches. Fails if the orders of the stages wait for each other. O(items +
/// messages log messages).
StatusOr<PipelineSchedule> orderMessages(StageOrders orders,
                                         const PipelineProblem &problem,
                                         const PlanOptions &options,
                                         bool backward);

/// Does the same for the training of two pipelines whose stages share devices in opposite
/// order (`timeMirrored`). `orders` and `problems` have two elements, the mirrored pipeline
/// last.
StatusOr<std::vector<PipelineSchedule>>
orderMirrored(std::vector<StageOrders> orders,
              const std::vector<PipelineProblem> &problems,
              const PlanOptions &options);

/// Calls orderItems and orderMessages. Orders that wait for each other are a fault of
/// the schedule.
StatusOr<PipelineSchedule> schedulePipeline(const PipelineProblem &problem,
                                            const PlanOptions &options,
                                            bool backward);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PIPELINESCHEDULE_H
