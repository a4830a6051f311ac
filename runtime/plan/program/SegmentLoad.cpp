//===- SegmentLoad.cpp - Computes loads of segments and micro-batches -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/SegmentLoad.h"

namespace dyna {

Load loadOf(const plan::Segment &segment) {
  return loadOf(segment.queries(), segment.keys(),
                segment.stream == segment.keyStream);
}

Load loadOf(const plan::MicroBatch &microBatch, int stream) {
  Load load;
  for (const plan::Segment &segment : microBatch.segments)
    if (segment.stream == stream)
      load += loadOf(segment);
  return load;
}

} // namespace dyna
