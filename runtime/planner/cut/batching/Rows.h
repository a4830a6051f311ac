//===- Rows.h - Micro-batches of a fixed number of rows -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The ways of other programs: a micro-batch is a matrix of tokens, so many rows
// of one length, and all micro-batches have as many rows.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_BATCHING_ROWS_H
#define DYNA_RUNTIME_PLANNER_BATCHING_ROWS_H

#include "runtime/planner/cut/batching/Batchings.h"

namespace dyna {

/// Samples one after another, each into the first row in which it has room, of
/// rows of at most `rowTokens`; a longer one has a row of its own. Rows in the
/// order of their first sample. O(samples * rows).
std::vector<std::vector<int64_t>> fillRows(const std::vector<int64_t> &lengths,
                                           int64_t rowTokens);

/// Segments of each row.
using Rows = std::vector<std::vector<plan::Segment>>;

/// A row for each sample, in their order.
Rows rowsOfSamples(const BatchingProblem &problem);

/// As many rows to a micro-batch as fit if all are as long as a row can be; they
/// are dealt to the replicas in turn. The last segment of a row is padded until
/// the row is as long as it can be, or with `toLongest` as the longest of its
/// micro-batch.
MicroBatches dealRows(const BatchingProblem &problem, const Rows &rows,
                      bool toLongest);

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_BATCHING_ROWS_H
