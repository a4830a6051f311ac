//===- Padding.h - Pads or joins samples like other programs do -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Other programs pad or pack samples; this file does the same, for comparison.
// Padding takes samples in their order into micro-batches, whose rows are as
// long as the longest sample. Packing joins several samples to one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_PADDING_H
#define DYNA_RUNTIME_DATA_PADDING_H

#include "runtime/data/BatchReader.h"

namespace dyna {

/// Returns the length of every sample's row. Rows times length of a micro-batch
/// are at most `tokensPerMicroBatch`.
std::vector<int64_t> paddedLengths(const std::vector<int64_t> &lengths,
                                   int64_t tokensPerMicroBatch);

/// Gives every sample that length, with tokens at its end that are not in the
/// loss. `tokens` of the mini-batch stays the number of real ones.
void padSamples(MiniBatch &miniBatch, int64_t tokensPerMicroBatch);

/// Joins the samples of each row to one sample; `rows` has their numbers in the
/// mini-batch. Positions go on, and attention crosses the borders. The joined
/// sample has the id of the first. Without rows nothing changes.
void joinSamples(MiniBatch &miniBatch,
                 const std::vector<std::vector<int64_t>> &rows);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_PADDING_H
