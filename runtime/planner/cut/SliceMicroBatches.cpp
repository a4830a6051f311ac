//===- SliceMicroBatches.cpp - Cuts micro-batches into slices -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/SliceMicroBatches.h"

#include <algorithm>

namespace dyna {

static void addSlices(const plan::MicroBatch &whole, const SliceChoice &choice,
                      std::vector<plan::MicroBatch> &sliced) {
  int64_t tokens = 0;
  for (const plan::Segment &segment : whole.segments)
    tokens += segment.length;
  std::vector<int64_t> slices = choice.cut(tokens);
  size_t slice = 0;
  int64_t room = slices[0];
  sliced.push_back({{}, whole.replica});
  for (plan::Segment rest : whole.segments) {
    // A sample without tokens stays in the slice of the sample before it.
    do {
      if (room == 0 && rest.length > 0) {
        sliced.push_back({{}, whole.replica});
        room = slices[++slice];
      }
      plan::Segment part = rest;
      part.length = std::min(rest.length, room);
      sliced.back().segments.push_back(part);
      room -= part.length;
      rest.begin += part.length;
      rest.length -= part.length;
    } while (rest.length > 0);
  }
}

std::vector<plan::MicroBatch>
sliceMicroBatches(std::vector<plan::MicroBatch> microBatches,
                  const SliceChoice &choice) {
  if (!choice.isFixed())
    return microBatches;
  std::vector<plan::MicroBatch> sliced;
  for (const plan::MicroBatch &whole : microBatches)
    addSlices(whole, choice, sliced);
  return sliced;
}

} // namespace dyna
