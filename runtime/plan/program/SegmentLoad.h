//===- SegmentLoad.h - Computes loads of segments and micro-batches -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_SEGMENTLOAD_H
#define DYNA_RUNTIME_PLAN_SEGMENTLOAD_H

#include "runtime/base/load/Load.h"
#include "runtime/plan/program/Plan.h"

namespace dyna {

/// Returns the load of a segment. A plan does not know which tokens have a target, so
/// `targets` stays 0.
Load loadOf(const plan::Segment &segment);

/// Returns the load of the micro-batch's segments of one stream.
Load loadOf(const plan::MicroBatch &microBatch, int stream = 0);

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_SEGMENTLOAD_H
