//===- PackedMasked.cpp - Joins samples with a mask -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The rows of Packed.cpp, in which attention stays within samples: the same
// function as without packing.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/batching/Rows.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  Rows rows;
  for (const std::vector<int64_t> &samples :
       fillRows(problem.lengths, problem.rowTokens)) {
    std::vector<plan::Segment> &row = rows.emplace_back();
    for (int64_t sample : samples)
      row.push_back({sample, 0, problem.lengths[sample]});
  }
  return dealRows(problem, rows, false);
}

} // namespace

extern const BatchingRule batchingPackedMasked = {
    "packed-masked", "the same rows, with attention within samples", cut, false,
    true};

} // namespace dyna
