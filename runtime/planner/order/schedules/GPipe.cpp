//===- GPipe.cpp - All forwards, then all backwards -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// GPipe (Huang et al., NeurIPS 2019), in windows of `inFlight` micro-batches,
// so that memory need not grow with their number. One stage with one in flight
// is plain gradient accumulation.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

std::vector<PipelineItem> ofStage(const StageShape &shape) {
  std::vector<PipelineItem> items;
  for (int begin = 0; begin < shape.microBatches; begin += shape.inFlight) {
    int end = std::min(begin + shape.inFlight, shape.microBatches);
    for (ItemKind kind : {ItemKind::Forward, ItemKind::Backward})
      for (int m = begin; m < end; ++m)
        items.push_back({kind, m});
  }
  return items;
}

StatusOr<StageOrders> order(const PipelineProblem &problem) {
  return ordersByShape(problem, ofStage);
}

int mostKept(const StageShape &shape) {
  return std::min(shape.inFlight, shape.microBatches);
}

} // namespace

extern const ScheduleRule scheduleGPipe = {
    "gpipe", "all forwards of --in-flight micro-batches, then their backwards",
    order,   mostKept,
    true,    false};

} // namespace dyna
