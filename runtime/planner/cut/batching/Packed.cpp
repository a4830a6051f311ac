//===- Packed.cpp - Joins samples to rows -----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Packs samples as Megatron-LM does: they are joined to rows of the longest
// length, and attention crosses them. This changes the computed function. So
// rows are made before they are planned, and each row is one sample here.
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
