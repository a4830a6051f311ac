//===- Padding.h - What padding would cost ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Ways of other programs, to compare with. Samples are taken in their order
// into micro-batches of rows that are as long as the longest of them; or several
// are joined to one.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_PADDING_H
#define DYNA_RUNTIME_DATA_PADDING_H

#include "runtime/data/BatchReader.h"

namespace dyna {

/// The length of every sample's row, where rows times length of a micro-batch
/// are at most `tokensPerMicroBatch`.
std::vector<int64_t> paddedLengths(const std::vector<int64_t> &lengths,
                                   int64_t tokensPerMicroBatch);

/// Gives every sample that length, with tokens behind it that are not in the
/// loss. `tokens` of the mini-batch stays the number of real ones.
void padSamples(MiniBatch &miniBatch, int64_t tokensPerMicroBatch);

/// Makes one sample of those of each row, which are numbers in the mini-batch:
/// positions go on, and attention goes across. It has the id of the first. Nothing
/// changes where there are no rows.
void joinSamples(MiniBatch &miniBatch,
                 const std::vector<std::vector<int64_t>> &rows);

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_PADDING_H
