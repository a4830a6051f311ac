//===- Padded.cpp - Cuts samples in order of length -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes padded micro-batches as in DynaPipe (EuroSys'24), section 4. Samples
// are ordered by length and cut where (stages - 1) * max t + sum t / replicas
// is smallest. All samples of a micro-batch are padded to the longest.
// Micro-batches are assigned to replicas by their seconds.
//
//===----------------------------------------------------------------------===//

#include "runtime/planner/cut/batching/Batchings.h"

namespace dyna {
namespace {

StatusOr<MicroBatches> cut(const BatchingProblem &problem) {
  DYNA_ASSIGN_OR_RETURN(auto partition, partitionByLength(problem));
  return dealMicroBatches(problem, partition, true);
}

} // namespace

extern const BatchingRule batchingPadded = {
    "padded", "samples of like length, as long as the longest of them", cut,
    true, true};

} // namespace dyna
