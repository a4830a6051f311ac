//===- Step.cu - Checks of indices, and the end of a step -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// All in one block: a micro-batch has thousands of rows, a step hundreds of
// losses and norms.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/Gpu.h"

using namespace dyna;

/// The first row whose index is none of the table's ends the kernel as failed;
/// what the host is to say of it stands in its memory before.
DYNA_KERNEL(check_rows) {
  int64_t first = args.count;
  for (int64_t row = gpu::threadIndex(); row < args.count;
       row += gpu::blockSize()) {
    int64_t index = args.ids ? args.ids[row] : args.positions[row];
    if ((index < 0 || index >= args.rows) && row < first)
      first = row;
  }
  for (int mask = 16; mask > 0; mask /= 2) {
    int64_t other = gpu::shuffleXor(first, mask);
    first = other < first ? other : first;
  }
  if (gpu::threadIndex() % 32 == 0)
    shared.first[gpu::threadIndex() / 32] = first;
  gpu::barrier();
  if (gpu::threadIndex() != 0)
    return;
  for (int warp = 1; warp < gpu::blockSize() / 32; ++warp)
    first = shared.first[warp] < first ? shared.first[warp] : first;
  if (first == args.count)
    return;
  args.bad->row = first;
  args.bad->value = args.ids ? args.ids[first] : args.positions[first];
  args.bad->rows = args.rows;
  args.bad->kind = args.ids ? gpu::BadRow::Token : gpu::BadRow::Position;
  gpu::fenceForHost();
  gpu::fail("an index that the table does not have");
}

/// A loss that is not finite makes the norm no number.
DYNA_KERNEL(note_losses) {
  for (int64_t i = gpu::threadIndex(); i < args.count; i += gpu::blockSize())
    // Infinity and no number alone are not 0 here. All write the same.
    if (args.losses[i] - args.losses[i] != 0)
      *args.squaredNorm = args.losses[i] - args.losses[i];
}

/// One thread adds in the order of the norms.
DYNA_KERNEL(clip_norm) {
  if (gpu::threadIndex() != 0)
    return;
  double sum = 0;
  for (int64_t i = 0; i < args.count; ++i)
    sum += args.squaredNorms[i];
  const double norm = gpu::squareRoot(sum);
  *args.norm = norm;
  // Of infinity and of no number it is no number, else 0.
  const double excess = norm - norm;
  int64_t left = *args.skipsLeft;
  if (excess != 0 && left >= 0)
    *args.skipsLeft = --left;
  // Below 0 no step changes anything, whatever its norm is.
  *args.scale = excess != 0 || left < 0               ? gpu::squareRoot(-1.0)
                : args.limit > 0 && norm > args.limit ? args.limit / norm
                                                      : 1;
}
