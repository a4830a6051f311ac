//===- HeadWorkspace.h - Lays out the workspace of the head -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The head computes logits, the loss and their gradients in chunks of rows. Its
// intermediate results lie in a workspace, whose bytes the compiler knows by the
// formulas of runtime/abi/Kernels.h: `dyna_head_chunk_workspace`, and those of
// exchanges and of bf16 sums. Every backend lays it out here.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HEADWORKSPACE_H
#define DYNA_RUNTIME_DEVICE_HEADWORKSPACE_H

#include "runtime/abi/Kernels.h"

#include <algorithm>

namespace dyna {

/// The blocks in the workspace of one call of the head. It owns no memory.
struct HeadWorkspace {
  /// Lays out `head.workspace`. `element` is the size of the compute type: 8, 4
  /// or 2 bytes.
  HeadWorkspace(const dyna_head &head, int64_t element)
      : rowBytes(head.width * element), stride(dyna_head_stride(head.vocab)),
        chunkRows(dyna_head_chunk_rows(&head)),
        next_(static_cast<char *>(head.workspace)) {
    gathered = take(chunkRows * rowBytes);
    gatheredGradient = take(chunkRows * rowBytes);
    const int64_t logit = dyna_logit_bytes(element, head.narrow_logits);
    logits = take(chunkRows * stride * logit);
    gradient = logit == element ? logits : take(chunkRows * stride * element);
    losses = reinterpret_cast<double *>(take(chunkRows * 8));
    if (head.whole_vocab != 0)
      exchanged = reinterpret_cast<double *>(take(3 * chunkRows * 8));
    if (head.dx && head.narrow_dw) {
      const int64_t rows = std::min<int64_t>(head.vocab, DYNA_HEAD_SLICE_ROWS);
      lowerHalves =
          reinterpret_cast<uint16_t *>(take(2 * head.width * head.vocab));
      slice = reinterpret_cast<float *>(take(4 * head.width * rows));
    }
    list = next_;
  }

  const int64_t rowBytes;  ///< bytes of a row of x and of dx
  const int64_t stride;    ///< elements from one row of logits to the next
  const int64_t chunkRows; ///< rows of a chunk
  char *gathered;          ///< rows of x that have a target
  char *gatheredGradient;  ///< gradient of `gathered`
  char *logits;
  char *gradient; ///< gradient of logits; the same block if types are equal
  double *losses; ///< one for each row of a chunk
  /// Largest logits, sums of exponentials and logits of targets, if ranks share
  /// the vocabulary. Otherwise null, as are the next two.
  double *exchanged = nullptr;
  /// Lower halves of the f32 sums of a bf16 weight gradient.
  uint16_t *lowerHalves = nullptr;
  float *slice = nullptr; ///< sums of a chunk for some rows of the gradient
  char *
      list; ///< indices of rows with a target: 8 bytes for each row of the call

private:
  char *take(int64_t bytes) {
    char *taken = next_;
    next_ += dyna_align_block(bytes);
    return taken;
  }

  char *next_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HEADWORKSPACE_H
