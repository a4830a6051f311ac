//===- GPipe.cpp - All forwards, then all backwards -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// GPipe (Huang et al., NeurIPS 2019), in windows of `inFlight` micro-batches,
// so that memory need not grow with their number. One stage with one in flight
// is plain gradient accumulation.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/schedules/Schedules.h"

#include <algorithm>

namespace dyna {
namespace {

std::vector<PipelineItem> order(const StageShape &shape) {
  std::vector<PipelineItem> items;
  for (int begin = 0; begin < shape.microBatches; begin += shape.inFlight) {
    int end = std::min(begin + shape.inFlight, shape.microBatches);
    for (bool forward : {true, false})
      for (int m = begin; m < end; ++m)
        items.push_back({forward, m});
  }
  return items;
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
