//===- EagerForward.cpp - 1F1B with more forwards ahead -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// As 1F1B, but stage s of S runs 2 (S - s) - 1 forwards ahead: messages have the
// time of one more micro-batch, for the memory of as many again.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

int ahead(const StageShape &shape) {
  return 2 * (shape.stages - shape.stage) - 1;
}

std::vector<PipelineItem> ofStage(const StageShape &shape) {
  std::vector<PipelineItem> items;
  for (int m = 0; m < shape.microBatches + ahead(shape); ++m) {
    if (m < shape.microBatches)
      items.push_back({ItemKind::Forward, m});
    if (int b = m - ahead(shape) + 1; b >= 0 && b < shape.microBatches)
      items.push_back({ItemKind::Backward, b});
  }
  return items;
}

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  return ordersByShape(problem, ofStage);
}

int mostKept(const StageShape &shape) {
  return std::min(ahead(shape), shape.microBatches);
}

} // namespace

extern const ScheduleRule scheduleEagerForward = {
    "eager", "one forward, one backward in turn, more of them ahead",
    order,   mostKept,
    false,   false};

} // namespace dyna
