//===- Scratch.h - Bytes of tensors, and scratch that ops need -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// What planning and code generation must agree about: how many bytes a tensor
// has, and how many bytes of workspace an op needs beside its results. An op
// with scratch has one more place than results, the last, where it begins.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_SCRATCH_H
#define DYNA_PASSES_MEMORY_SCRATCH_H

#include "dialects/dyna/Dyna.h"
#include <optional>

namespace mlir::dyna {

/// Bytes, linear in rounded query tokens, key/value tokens, segments and 1.
struct LinearBytes {
  int64_t tq = 0;
  int64_t tkv = 0;
  int64_t s = 0;
  int64_t constant = 0;

  LinearBytes operator+(const LinearBytes &other) const {
    return {tq + other.tq, tkv + other.tkv, s + other.s,
            constant + other.constant};
  }
  bool operator==(const LinearBytes &other) const {
    return tq == other.tq && tkv == other.tkv && s == other.s &&
           constant == other.constant;
  }
  /// Whether this is at most `other` for all tokens and segments.
  bool isAtMost(const LinearBytes &other) const {
    return tq <= other.tq && tkv <= other.tkv && s <= other.s &&
           constant <= other.constant;
  }
  /// The least linear function that is nowhere below either.
  LinearBytes upperBound(const LinearBytes &other) const {
    return {std::max(tq, other.tq), std::max(tkv, other.tkv),
            std::max(s, other.s), std::max(constant, other.constant)};
  }
  /// The bytes for these counts, each first rounded up to DYNA_ROW_ALIGNMENT;
  /// what 63 bits cannot count is the largest number that they can.
  int64_t at(int64_t queryTokens, int64_t keyTokens, int64_t segments) const;
  /// `1536*Tq + 64`, or `0`.
  std::string str() const;
};

/// The offset that a place in a block states.
LinearBytes offsetOf(PlaceAttr place);
PlaceAttr placeAt(MLIRContext *context, Memory memory, int64_t index,
                  const LinearBytes &offset);

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
///   DYNA_MAX_CHUNKS partial sums of its width, each such block aligned;
/// - sum_squares: DYNA_MAX_CHUNKS partial sums of 8 bytes.
std::optional<LinearBytes> scratchOf(Operation *op);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_SCRATCH_H
