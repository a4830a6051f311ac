//===- Chimera.cpp - Orders one of two mirrored pipelines -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Items run in the order of their slots (ChimeraSlots.h). This is the order of one
// direction of Chimera (Li and Hoefler, SC 2021), with units directly behind each other.
// Where both directions share devices, the slots of both are one order.
//
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/ChimeraSlots.h"
#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

std::vector<PipelineItem> ofStage(const StageShape &shape,
                                  const BackwardOrder &backwards) {
  std::vector<PipelineItem> items;
  auto slotOf = [&](bool isForward, int number) {
    return chimeraSlot(isForward, number, shape.stage, shape.stages);
  };
  int forwards = 0;
  for (int place = 0; place < shape.microBatches; ++place) {
    const int64_t slot = slotOf(false, backwards.forwards[place] - 1);
    for (; forwards < shape.microBatches && slotOf(true, forwards) < slot;
         ++forwards)
      items.push_back({ItemKind::Forward, forwards});
    items.push_back({ItemKind::Backward, backwards.sequence[place]});
  }
  return items;
}

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  return ordersByShape(problem, ofStage);
}

int mostKept(const StageShape &shape) {
  return std::min({chimeraUnit(shape.stages), shape.stages - shape.stage,
                   shape.microBatches});
}

} // namespace

extern const ScheduleRule scheduleChimera = {
    "chimera", "two pipelines in opposite directions, for an even pp",
    order,     mostKept,
    false,     false};

} // namespace dyna
