//===- Packed.cpp - Rows of joined samples -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Megatron-LM's way of packing: samples are joined to rows of the longest length
// that one can have, and attention goes across. That changes what is computed:
// rows are made before they are planned, and each is one sample here.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/batching/Rows.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  Rows rows;
  for (size_t sample = 0; sample < problem.lengths.size(); ++sample)
    rows.push_back(
        {{static_cast<int64_t>(sample), 0, problem.lengths[sample]}});
  return dealRows(problem, rows, false);
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
