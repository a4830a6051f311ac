//===- Rows.h - Makes micro-batches of rows ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Makes micro-batches as other programs do: a micro-batch is a matrix of
// tokens. All rows have one length, and all micro-batches have equally many
// rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_BATCHING_ROWS_H
#define DYNA_RUNTIME_PLANNER_BATCHING_ROWS_H

#include "runtime/planner/cut/batching/Batchings.h"

namespace dyna {

/// Fills rows of at most `rowTokens`. Each sample in turn goes into the first
/// row with room; a longer one has a row of its own. Rows are ordered by their
/// first sample. O(samples * rows).
std::vector<std::vector<int64_t>> fillRows(const std::vector<int64_t> &lengths,
                                           int64_t rowTokens);

/// Segments of each row.
using Rows = std::vector<std::vector<plan::Segment>>;

/// Returns a row for each sample, in their order.
Rows rowsOfSamples(const BatchingProblem &problem);

/// Deals rows to micro-batches, and these to the replicas in turn. A
/// micro-batch has as many rows as fit if all have the largest length. The last
/// segment of a row is padded to that length. With `toLongest` it is padded to
/// the longest row of its micro-batch.
MicroBatches dealRows(const BatchingProblem &problem, const Rows &rows,
                      bool toLongest);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_BATCHING_ROWS_H
