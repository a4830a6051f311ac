//===- OpScratch.h - Bytes of tensors, and scratch that ops need -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What planning and code generation must agree about: how many bytes a tensor
// has, and how many bytes of workspace an op needs beside its results. An op
// with scratch has one more place than results, the last, where it begins.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_OPSCRATCH_H
#define DYNA_PASSES_MEMORY_OPSCRATCH_H

#include "dialects/dyna/Dyna.h"
#include <optional>

namespace mlir::dyna {

using ::dyna::LinearBytes;

/// The bytes of a tensor; rounded up to DYNA_BLOCK_ALIGNMENT if it is static.
/// A dynamic first dimension counts query tokens.
LinearBytes bytesOf(Type type);

/// What values take that lie side by side in rows of `stride` bytes, from what
/// one of them takes alone in rows of `rowBytes`.
LinearBytes stridedBytes(const LinearBytes &alone, int64_t rowBytes,
                         int64_t stride);

/// The bytes of workspace that an op needs beside its results, if any:
/// - attention_grad, linear_cross_entropy, linear_cross_entropy_train: what the
///   runtime's kernels ask for (runtime/abi/Kernels.h);
/// - rows: for each vector that the sweep adds to, in the order of the results,
///   the target's partial sums of its width, each such block aligned;
/// - embedding_grad, positions_grad: links from row to row, under bf16;
/// - sum_squares: DYNA_MAX_CHUNKS partial sums of 8 bytes.
/// An op that is left out has no place for scratch, for which its lowering
/// asks: it does not compile.
std::optional<LinearBytes> scratchOf(Operation *op);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_OPSCRATCH_H
