//===- OpScratch.h - Computes bytes of tensors and scratch of ops ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Planning and code generation must agree on two sizes. One is the bytes of a
// tensor. The other is the bytes of workspace that an op needs beside its
// results. An op with scratch has one more place than results; the last place
// is the scratch.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_VALUE_OPSCRATCH_H
#define DYNA_PASSES_MEMORY_VALUE_OPSCRATCH_H

#include "dialects/dyna/Dyna.h"
#include <optional>

namespace mlir::dyna {

using ::dyna::LinearBytes;

/// Returns the bytes of a tensor, rounded up to DYNA_BLOCK_ALIGNMENT if it is
/// static. A dynamic first dimension counts query tokens.
LinearBytes bytesOf(Type type);

/// Returns the bytes of values that lie side by side in rows of `stride` bytes.
/// `alone` are the bytes of one of them in rows of `rowBytes`.
LinearBytes stridedBytes(const LinearBytes &alone, int64_t rowBytes,
                         int64_t stride);

/// Returns the bytes of workspace that an op needs beside its results, if any:
/// - attention_grad, linear_cross_entropy, linear_cross_entropy_train: the
///   scratch of the runtime's kernels (runtime/abi/Kernels.h);
/// - rows: the target's partial sums of each vector that the sweep adds to, in
///   the order of the results, each block aligned;
/// - embedding_grad, positions_grad: links from row to row, under bf16;
/// - sum_squares: DYNA_MAX_CHUNKS partial sums of 8 bytes.
///
/// An op that is missing here has no place for scratch. If its lowering asks
/// for one, it does not compile.
std::optional<LinearBytes> scratchOf(Operation *op);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_VALUE_OPSCRATCH_H
