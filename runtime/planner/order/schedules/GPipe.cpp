//===- GPipe.cpp - Runs forwards before backwards ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// GPipe (Huang et al., NeurIPS 2019), in windows of `inFlight` micro-batches,
// so that memory need not grow with their number. All slices of a sample count as one.
// One stage with one in flight is plain gradient accumulation.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/order/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

std::vector<PipelineItem> ofStage(const StageShape &shape,
                                  const BackwardOrder &backwards) {
  std::vector<PipelineItem> items;
  const std::vector<int> &ends = backwards.unitEnds;
  const auto window = static_cast<size_t>(shape.inFlight);
  int begin = 0;
  for (size_t unit = 0; unit < ends.size(); unit += window) {
    const int end = ends[std::min(unit + window, ends.size()) - 1];
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
  return std::min(shape.inFlight, shape.microBatches);
}

} // namespace

extern const ScheduleRule scheduleGPipe = {
    "gpipe", "all forwards of --in-flight micro-batches, then their backwards",
    order,   mostKept,
    true,    false};

} // namespace dyna
