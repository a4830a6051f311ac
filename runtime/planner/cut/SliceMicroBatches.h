//===- SliceMicroBatches.h - Cuts micro-batches into slices -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A micro-batch is a row of tokens: its samples end to end. Slices cut this row, so all
// of them have the tokens that were asked for. A sample that lies across a border goes
// on in the next slice. Each slice becomes a micro-batch of the same replica.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_SLICEMICROBATCHES_H
#define DYNA_RUNTIME_PLANNER_SLICEMICROBATCHES_H

#include "runtime/plan/program/Plan.h"
#include "runtime/planner/cut/SliceChoice.h"

#include <vector>

namespace dyna {

/// Cuts each micro-batch. Its segments must be whole samples. Linear in segments and
/// slices.
std::vector<plan::MicroBatch>
sliceMicroBatches(std::vector<plan::MicroBatch> microBatches,
                  const SliceChoice &choice);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_SLICEMICROBATCHES_H
