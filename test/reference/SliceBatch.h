//===- SliceBatch.h - Cuts batches into token slices ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The samples of a batch pass in several micro-batches: some whole, others in slices of
// tokens. Slices of several samples and whole samples share micro-batches.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_REFERENCE_SLICEBATCH_H
#define DYNA_TEST_REFERENCE_SLICEBATCH_H

#include "test/reference/Evaluator.h"

namespace mlir::dyna::reference {

struct SlicedBatch {
  /// Micro-batches in the order of forward.
  std::vector<Batch> parts;
  /// The row of the whole batch that each row of a part is.
  std::vector<std::vector<int64_t>> rows;
};

/// Makes a batch of whole samples with these lengths. Some targets are outside of the loss.
Batch makeBatch(ModelOp model, const std::vector<int64_t> &lengths,
                uint64_t seed);

/// Cuts the samples of `batch`, which are whole, at random: three quarters of those with
/// two tokens or more, into up to `most` slices. Some slices have one token.
SlicedBatch sliceBatch(const Batch &batch, uint64_t seed, int64_t most = 7);

} // namespace mlir::dyna::reference

#endif // DYNA_TEST_REFERENCE_SLICEBATCH_H
