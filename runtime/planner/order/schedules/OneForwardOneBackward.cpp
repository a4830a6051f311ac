//===- OneForwardOneBackward.cpp - 1F1B -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Stage s of S runs S - s forwards ahead and then one backward after each
// forward (PipeDream-Flush, Narayanan et al., ICML 2021): no stage keeps more
// than S - s micro-batches, whatever their number.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

int ahead(const StageShape &shape) { return shape.stages - shape.stage; }

std::vector<PipelineItem> ofStage(const StageShape &shape) {
  std::vector<PipelineItem> items;
  for (int m = 0; m < shape.microBatches + ahead(shape); ++m) {
    if (m < shape.microBatches)
      items.push_back({ItemKind::Forward, m});
    // The first backward follows the forward number `ahead`.
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

extern const ScheduleRule scheduleOneForwardOneBackward = {
    "1f1b", "one forward, one backward in turn", order, mostKept, false, false};

} // namespace dyna
