//===- SegmentLoad.cpp - Loads of segments and micro-batches --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/SegmentLoad.h"

namespace dyna {

Load loadOf(const plan::Segment &segment) {
  const TokenRange own = {segment.begin, segment.length};
  return loadOf(own, own);
}

Load loadOf(const plan::MicroBatch &microBatch) {
  Load load;
  for (const plan::Segment &segment : microBatch.segments)
    load += loadOf(segment);
  return load;
}

} // namespace dyna
