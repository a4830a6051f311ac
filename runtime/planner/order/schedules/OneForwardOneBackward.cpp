//===- OneForwardOneBackward.cpp - Orders by 1F1B ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Stage s of S runs S - s forwards ahead, and then one backward after each
// forward. This is PipeDream-Flush (Narayanan et al., ICML 2021). No stage
// keeps more than S - s micro-batches, for any number of them. With samples in
// k slices it keeps S - s - 1 + k slices (Seq1F1B, Sun et al., 2024).
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

int ahead(const StageShape &shape) { return shape.stages - shape.stage; }

std::vector<PipelineItem> ofStage(const StageShape &shape,
                                  const BackwardOrder &backwards) {
  std::vector<PipelineItem> items;
  int forwards = 0;
  for (int place = 0; place < shape.microBatches; ++place) {
    // The last stage runs one forward more than backwards.
    const int until = std::min(backwards.forwards[place] + ahead(shape) - 1,
                               shape.microBatches);
    for (; forwards < until; ++forwards)
      items.push_back({ItemKind::Forward, forwards});
    items.push_back({ItemKind::Backward, backwards.sequence[place]});
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
