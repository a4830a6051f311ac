//===- Samples.cpp - Pads a fixed number of samples -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Samples in their order, so many to a micro-batch that they fit however long they
// are, padded to the longest of them.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/batching/Rows.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  return dealRows(problem, rowsOfSamples(problem), true);
}

} // namespace

extern const BatchingRule batchingSamples = {
    "samples",
    "a fixed number of samples in their order, as long as the longest of them",
    cut, false, true};

} // namespace dyna
