//===- MmaTiles.h - Products of tiles of bf16 by tensor cores ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A warp has 16 rows of a product, in accumulators of multiplyAdd: `c[n][..]` is
// columns 8 n to 8 n + 7. As a left operand the same elements are the weights of
// the next product, rounded to bf16, without leaving their registers.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_MMATILES_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_MMATILES_H

#include "runtime/device/cuda/kernels/Gpu.h"

namespace dyna {
namespace gpu {

template <int count> DYNA_GPU void clear(float (&sums)[count][4]) {
#pragma unroll
  for (int n = 0; n < count; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i)
      sums[n][i] = 0;
}

/// Begins to copy `there` rows of `columns` elements, `stride` apart, into a tile,
/// and zeros where there are none. Rows that are not aligned to 16 bytes are
/// copied at once. The whole block calls it.
template <int rows, int width>
DYNA_GPU void loadTile(MmaTile<rows, width> &tile, const uint16_t *from,
                       int64_t stride, int there, int columns, bool isAligned) {
  for (int i = threadIndex(); i < rows * (width / 8); i += kMmaThreads) {
    int row = i / (width / 8), column = i % (width / 8) * 8;
    uint16_t *to = &tile.data[row][column];
    const uint16_t *source = from + row * stride + column;
    if (isAligned) {
      copyAsync(to, source, row < there && column < columns);
      continue;
    }
#pragma unroll
    for (int j = 0; j < 8; ++j)
      to[j] = row < there && column + j < columns ? source[j] : uint16_t(0);
  }
}

/// The left operand of columns [column, column + 16) of rows [row, row + 16).
template <int rows, int width>
DYNA_GPU void loadLeft(uint32_t (&a)[4], const MmaTile<rows, width> &tile,
                       int row, int column) {
  int lane = threadIndex() % 32;
  loadMatrices(a, &tile.data[row + lane % 16][column + lane / 16 * 8]);
}

/// sums += A B^T: 16 rows of `left`, from `row`, times all rows of `right`.
template <int n, int width, int leftRows>
DYNA_GPU void multiplyRows(float (&sums)[n / 8][4],
                           const MmaTile<leftRows, width> &left, int row,
                           const MmaTile<n, width> &right) {
  int lane = threadIndex() % 32;
#pragma unroll
  for (int k = 0; k < width; k += 16) {
    uint32_t a[4];
    loadLeft(a, left, row, k);
#pragma unroll
    for (int column = 0; column < n; column += 16) {
      uint32_t b[4];
      loadMatrices(
          b,
          &right.data[column + lane % 8 + lane / 16 * 8][k + lane / 8 % 2 * 8]);
      multiplyAdd(sums[column / 8], a, b[0], b[1]);
      multiplyAdd(sums[column / 8 + 1], a, b[2], b[3]);
    }
  }
}

/// sums += W B: the weights, 16 rows of n columns, times the n rows of `right`.
template <int n, int width>
DYNA_GPU void addWeighted(float (&sums)[width / 8][4],
                          const float (&weights)[n / 8][4],
                          const MmaTile<n, width> &right) {
  int lane = threadIndex() % 32;
#pragma unroll
  for (int k = 0; k < n; k += 16) {
    const float (&low)[4] = weights[k / 8];
    const float (&high)[4] = weights[k / 8 + 1];
    uint32_t a[4] = {packBf16(low[0], low[1]), packBf16(low[2], low[3]),
                     packBf16(high[0], high[1]), packBf16(high[2], high[3])};
#pragma unroll
    for (int column = 0; column < width; column += 16) {
      uint32_t b[4];
      loadMatricesTransposed(
          b, &right.data[k + lane % 16][column + lane / 16 * 8]);
      multiplyAdd(sums[column / 8], a, b[0], b[1]);
      multiplyAdd(sums[column / 8 + 1], a, b[2], b[3]);
    }
  }
}

/// Writes the warp's rows from `row` on, those below `end`, each times its factor.
/// `to` is row 0, at the head.
template <int width>
DYNA_GPU void storeRows(uint16_t *to, int64_t stride, int32_t row, int32_t end,
                        int columns, bool isAligned,
                        const float (&sums)[width / 8][4],
                        const float (&factors)[2]) {
  int lane = threadIndex() % 32;
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    int64_t at = row + lane / 4 + 8 * i;
    if (at >= end)
      continue;
#pragma unroll
    for (int n = 0; n < width / 8; ++n) {
      int column = 8 * n + 2 * (lane % 4);
      uint16_t *target = to + at * stride + column;
      uint32_t pair = packBf16(sums[n][2 * i] * factors[i],
                               sums[n][2 * i + 1] * factors[i]);
      if (isAligned && column < columns) {
        *reinterpret_cast<uint32_t *>(target) = pair;
        continue;
      }
      if (column < columns)
        target[0] = static_cast<uint16_t>(pair);
      if (column + 1 < columns)
        target[1] = static_cast<uint16_t>(pair >> 16);
    }
  }
}

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_MMATILES_H
