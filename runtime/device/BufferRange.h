//===- BufferRange.h - Checks ranges of buffers -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_BUFFERRANGE_H
#define DYNA_RUNTIME_DEVICE_BUFFERRANGE_H

#include "runtime/base/text/Text.h"
#include "runtime/device/Device.h"

namespace dyna {

/// Returns InvalidArgument if `bytes` bytes at `offset` do not lie in the buffer. The
/// message calls their use `what` ("copy").
inline Status checkRange(const Buffer &buffer, int64_t offset, int64_t bytes,
                         const char *what) {
  if (offset < 0 || bytes < 0 || offset > buffer.bytes() ||
      bytes > buffer.bytes() - offset)
    return Status::invalidArgument(
        formatText("%s of %d bytes at offset %d of a buffer of %d", what, bytes,
                   offset, buffer.bytes()));
  return Status::ok();
}

/// Returns InvalidArgument if these are no valid arguments of
/// Device::zeroWhere.
inline Status checkZeroWhere(const Buffer &target, int64_t offset,
                             const Buffer &mask, int64_t maskOffset,
                             int64_t count, int64_t elementBytes) {
  const bool isSize =
      elementBytes == 2 || elementBytes == 4 || elementBytes == 8;
  if (!isSize || count < 0 || count > target.bytes() ||
      offset % elementBytes != 0)
    return Status::invalidArgument(
        formatText("zero_where of %d elements of %d bytes at offset %d: they "
                   "have 2, 4 or 8 bytes and lie at multiples of that",
                   count, elementBytes, offset));
  DYNA_RETURN_IF_ERROR(
      checkRange(target, offset, count * elementBytes, "zero_where"));
  return checkRange(mask, maskOffset, count, "zero_where by a mask");
}

/// Returns InvalidArgument if these are no valid arguments of Device::addScores.
inline Status checkScores(const Buffer &buffer, const ScoredWeights &scored) {
  const int64_t score = scored.scoreBytes, gradient = scored.gradientBytes;
  const bool isType = (score == 4 || score == 8) &&
                      (gradient == score || (gradient == 2 && score == 4));
  const bool isPlaced =
      isType && scored.scores % score == 0 &&
      scored.gradients % gradient == 0 &&
      (scored.weights < 0 ? scored.mask >= 0 : scored.weights % score == 0);
  if (!isPlaced || scored.count < 0 || scored.count > buffer.bytes())
    return Status::invalidArgument(formatText(
        "add_scores of %d elements of %d bytes, with gradients of %d: scores "
        "are f32 or f64, gradients too or bf16, at multiples of their sizes, "
        "and there are weights or a mask",
        scored.count, score, gradient));
  DYNA_RETURN_IF_ERROR(checkRange(buffer, scored.scores, scored.count * score,
                                  "add_scores to scores"));
  DYNA_RETURN_IF_ERROR(checkRange(buffer, scored.gradients,
                                  scored.count * gradient,
                                  "add_scores of gradients"));
  return scored.weights < 0
             ? checkRange(buffer, scored.mask, scored.count,
                          "add_scores by a mask")
             : checkRange(buffer, scored.weights, scored.count * score,
                          "add_scores of weights");
}

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_BUFFERRANGE_H
