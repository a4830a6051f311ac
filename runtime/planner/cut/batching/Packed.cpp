//===- Packed.cpp - Rows of joined samples -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Megatron-LM's way of packing: samples are joined to rows of the longest length
// that one can have, and attention goes across. That changes what is computed:
// rows are made before they are planned, and each is one sample here.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/batching/Rows.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  return dealRows(problem, rowsOfSamples(problem), false);
}

} // namespace

extern const BatchingRule batchingPacked = {
    "packed",
    "samples joined to rows of the longest length, with attention across",
    cut,
    false,
    true,
    true};

} // namespace dyna
