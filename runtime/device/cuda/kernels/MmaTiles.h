//===- MmaTiles.h - Multiplies tiles of bf16 --------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A warp has 16 m rows of a product, in accumulators of multiplyAdd: `c[i][n][..]`
// is columns 8 n to 8 n + 7 of rows 16 i to 16 i + 15. As a left operand the same
// elements are the weights of the next product, rounded to bf16, without leaving
// their registers. What is read of the right operand is multiplied by all m.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_MMATILES_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_MMATILES_H

#include "runtime/device/cuda/kernels/Gpu.h"

namespace dyna {
namespace gpu {

template <int m, int count> DYNA_GPU void clear(float (&sums)[m][count][4]) {
#pragma unroll
  for (int i = 0; i < m; ++i)
#pragma unroll
    for (int n = 0; n < count; ++n)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[i][n][e] = 0;
}

/// Returns elements [8 piece, 8 piece + 8) of a row. Their place depends on the
/// row's number modulo eight.
template <int rows, int width>
DYNA_GPU uint16_t *pieceOf(MmaTile<rows, width> &tile, int row, int piece) {
  return &tile.data[row][0] + (piece ^ row % 8) * 8;
}

/// Address of a lane for loadMatrices. The four matrices cover 16 rows and 16
/// columns, which begin at multiples of 16. `byRows` numbers them down the rows
/// first. It is for the left operand of `multiplyRows` and, transposed, for the
/// right one of `addWeighted`. `byColumns` numbers them along the columns
/// first. It is for the right operand of `multiplyRows`.
struct LanePlace {
  int row, swizzle;

  DYNA_GPU static LanePlace byRows() {
    const int lane = threadIndex() % 32;
    return {lane % 16, (lane / 16 ^ lane % 8) * 8};
  }
  DYNA_GPU static LanePlace byColumns() {
    const int lane = threadIndex() % 32;
    return {lane % 8 + lane / 16 * 8, (lane / 8 % 2 ^ lane % 8) * 8};
  }
  template <int rows, int width>
  DYNA_GPU const uint16_t *in(const MmaTile<rows, width> &tile, int firstRow,
                              int column) const {
    return &tile.data[firstRow + row][0] + (column ^ swizzle);
  }
};

/// Begins to copy `there` rows of `columns` elements, `stride` apart, into a
/// tile, and zeros beyond them. Rows that are not aligned to 16 bytes are
/// copied synchronously. The whole block calls it.
template <bool isAligned, int rows, int width>
DYNA_GPU void loadTile(MmaTile<rows, width> &tile, const uint16_t *from,
                       int64_t stride, int there, int columns) {
  constexpr int pieces = width / 8, step = kMmaThreads / pieces;
  const int first = threadIndex() / pieces, column = threadIndex() % pieces * 8;
  from += first * stride + column;
  if constexpr (isAligned) {
#pragma unroll
    for (int row = 0; row < rows; row += step)
      copyAsync(pieceOf(tile, first + row, column / 8), from + row * stride,
                first + row < there && column < columns);
  } else {
#pragma unroll 1
    for (int row = first; row < rows; row += step, from += step * stride) {
      uint16_t *to = pieceOf(tile, row, column / 8);
#pragma unroll 1
      for (int j = 0; j < 8; ++j)
        to[j] = row < there && column + j < columns ? from[j] : uint16_t(0);
    }
  }
}

/// sums = A B^T: 16 m rows of `left`, from `row`, times all rows of `right`.
template <int m, int n, int width, int leftRows>
DYNA_GPU void multiplyRows(float (&sums)[m][n / 8][4],
                           const MmaTile<leftRows, width> &left, int row,
                           const MmaTile<n, width> &right) {
  clear(sums);
  const LanePlace ofLeft = LanePlace::byRows();
  const LanePlace ofRight = LanePlace::byColumns();
#pragma unroll
  for (int k = 0; k < width; k += 16) {
    uint32_t a[m][4];
#pragma unroll
    for (int i = 0; i < m; ++i)
      loadMatrices(a[i], ofLeft.in(left, row + 16 * i, k));
#pragma unroll
    for (int column = 0; column < n; column += 16) {
      uint32_t b[4];
      loadMatrices(b, ofRight.in(right, column, k));
#pragma unroll
      for (int i = 0; i < m; ++i) {
        multiplyAdd(sums[i][column / 8], a[i], b[0], b[1]);
        multiplyAdd(sums[i][column / 8 + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/// sums += W B: the weights, 16 m rows of n columns, times the n rows of `right`.
template <int m, int n, int width>
DYNA_GPU void addWeighted(float (&sums)[m][width / 8][4],
                          const float (&weights)[m][n / 8][4],
                          const MmaTile<n, width> &right) {
  const LanePlace ofRight = LanePlace::byRows();
#pragma unroll
  for (int k = 0; k < n; k += 16) {
    uint32_t a[m][4];
#pragma unroll
    for (int i = 0; i < m; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const float (&w)[4] = weights[i][k / 8 + half];
        a[i][2 * half] = packBf16(w[0], w[1]);
        a[i][2 * half + 1] = packBf16(w[2], w[3]);
      }
#pragma unroll
    for (int column = 0; column < width; column += 16) {
      uint32_t b[4];
      loadMatricesTransposed(b, ofRight.in(right, k, column));
#pragma unroll
      for (int i = 0; i < m; ++i) {
        multiplyAdd(sums[i][column / 8], a[i], b[0], b[1]);
        multiplyAdd(sums[i][column / 8 + 1], a[i], b[2], b[3]);
      }
    }
  }
}

/// Writes the warp's rows from `row` on, those below `end`, each times its factor.
/// `to` is row 0, at the head.
template <bool isAligned, int m, int width>
DYNA_GPU void storeRows(uint16_t *to, int64_t stride, int32_t row, int32_t end,
                        int columns, const float (&sums)[m][width / 8][4],
                        const float (&factors)[2 * m]) {
  const int lane = threadIndex() % 32;
#pragma unroll
  for (int i = 0; i < 2 * m; ++i) {
    const int64_t at = row + lane / 4 + 8 * i;
    if (at >= end)
      continue;
#pragma unroll
    for (int n = 0; n < width / 8; ++n) {
      const int column = 8 * n + 2 * (lane % 4);
      uint16_t *target = to + at * stride + column;
      const float (&two)[4] = sums[i / 2][n];
      uint32_t pair = packBf16(two[i % 2 * 2] * factors[i],
                               two[i % 2 * 2 + 1] * factors[i]);
      if constexpr (isAligned) {
        if (column < columns)
          *reinterpret_cast<uint32_t *>(aligned<4>(target)) = pair;
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
