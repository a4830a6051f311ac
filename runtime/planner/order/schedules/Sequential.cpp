//===- Sequential.cpp - Runs micro-batches singly ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Runs one micro-batch forward and backward through all stages before the next
// one starts, and waits for every send at once. This is slow, but never holds
// values of two micro-batches together, except for slices of one sample. The
// planner uses it if memory is short.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

std::vector<PipelineItem> ofStage(const StageShape &,
                                  const BackwardOrder &backwards) {
  std::vector<PipelineItem> items;
  int begin = 0;
  for (int end : backwards.unitEnds) {
    for (int m = begin; m < end; ++m)
      items.push_back({ItemKind::Forward, m});
    for (int place = begin; place < end; ++place)
      items.push_back({ItemKind::Backward, backwards.sequence[place]});
    begin = end;
  }
  return items;
}

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  return ordersByShape(problem, ofStage);
}

int mostKept(const StageShape &shape) {
  return std::min(1, shape.microBatches);
}

} // namespace

extern const ScheduleRule scheduleSequential = {
    "sequential", "one micro-batch after another: slow, least memory",
    order,        mostKept,
    false,        true};

} // namespace dyna
