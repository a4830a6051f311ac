//===- MicroKernel.h - Multiplies small matrices in registers ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// C[m, n] = A[m, k] * B[k, n] for blocks that lie in cache. The elements of A
// are broadcast, so A may have any strides (a transposed A costs nothing); B
// and C are rows of whole vectors. A tile of C stays in registers over all of
// k.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_MICROKERNEL_H
#define DYNA_RUNTIME_DEVICE_HOST_MICROKERNEL_H

#include "runtime/device/host/Simd.h"

namespace dyna {
namespace DYNA_ISA {

/// Start value of C: zero, C itself, or C times a factor per column.
enum class Start { Zero, Add, Scale };

template <typename T> struct SmallProduct {
  int64_t k;
  const T *a;
  int64_t rowA;  ///< distance of two rows of A
  int64_t stepA; ///< distance of two k in A
  const T *b;
  int64_t strideB;
  T *c;
  int64_t strideC;
  Start start = Start::Zero;
  const T *scale = nullptr; ///< [n], for Start::Scale
};

/// Largest number of vectors in a row of a tile, and the number of rows that
/// then fill the registers.
constexpr int kTileVectors = kRegisters == 32 ? 4 : 2;
constexpr int tileRows(int vectors) {
  if (kRegisters == 32)
    return vectors == 4 ? 6 : vectors == 3 ? 8 : 12;
  return vectors == 2 ? 6 : 8;
}

/// Computes one tile of C: `Rows` rows of `Vectors` vectors.
template <typename T, int Rows, int Vectors>
DYNA_INLINE void tile(const SmallProduct<T> &p, const T *a, const T *b, T *c,
                      const T *scale) {
  constexpr int w = kLanes<T>;
  // Copy these: the compiler assumes that a store through `c` may change `p`.
  const int64_t k = p.k, rowA = p.rowA, stepA = p.stepA;
  const int64_t strideB = p.strideB, strideC = p.strideC;
  Vec<T> sums[Rows][Vectors];
  DYNA_UNROLL
  for (int i = 0; i < Rows; ++i)
    DYNA_UNROLL
  for (int j = 0; j < Vectors; ++j)
    sums[i][j] = Vec<T>{};
  if (p.start != Start::Zero) {
    DYNA_UNROLL
    for (int i = 0; i < Rows; ++i)
      DYNA_UNROLL
    for (int j = 0; j < Vectors; ++j)
      sums[i][j] = load(c + i * strideC + j * w);
  }
  if (p.start == Start::Scale) {
    DYNA_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      Vec<T> factor = load(scale + j * w);
      DYNA_UNROLL
      for (int i = 0; i < Rows; ++i)
        sums[i][j] *= factor;
    }
  }
  for (int64_t step = 0; step < k; ++step, a += stepA, b += strideB) {
    Vec<T> row[Vectors];
    DYNA_UNROLL
    for (int j = 0; j < Vectors; ++j)
      row[j] = load(b + j * w);
    DYNA_UNROLL
    for (int i = 0; i < Rows; ++i) {
      Vec<T> element = splat(a[i * rowA]);
      DYNA_UNROLL
      for (int j = 0; j < Vectors; ++j)
        sums[i][j] += element * row[j];
    }
  }
  DYNA_UNROLL
  for (int i = 0; i < Rows; ++i)
    DYNA_UNROLL
  for (int j = 0; j < Vectors; ++j)
    store(c + i * strideC + j * w, sums[i][j]);
}

/// Computes the last `rows` (at most Rows) rows of a column of tiles.
template <typename T, int Rows, int Vectors>
inline void lastTile(const SmallProduct<T> &p, int64_t rows, const T *a,
                     const T *b, T *c, const T *scale) {
  if constexpr (Rows > 0) {
    if (rows == Rows)
      tile<T, Rows, Vectors>(p, a, b, c, scale);
    else
      lastTile<T, Rows - 1, Vectors>(p, rows, a, b, c, scale);
  }
}

/// Computes a column of tiles, `Vectors` wide, for all rows.
template <typename T, int Vectors>
inline void tileColumn(const SmallProduct<T> &p, int64_t rows, int64_t column) {
  constexpr int most = tileRows(Vectors);
  const T *b = p.b + column;
  const T *scale = p.scale ? p.scale + column : nullptr;
  int64_t row = 0;
  for (; row + most <= rows; row += most)
    tile<T, most, Vectors>(p, p.a + row * p.rowA, b,
                           p.c + row * p.strideC + column, scale);
  if (row < rows)
    lastTile<T, most - 1, Vectors>(p, rows - row, p.a + row * p.rowA, b,
                                   p.c + row * p.strideC + column, scale);
}

/// Computes the product of `rows` rows and `vectors` vectors of columns.
template <typename T>
void multiply(const SmallProduct<T> &p, int64_t rows, int64_t vectors) {
  constexpr int w = kLanes<T>;
  int64_t done = 0;
  for (; done + kTileVectors <= vectors; done += kTileVectors)
    tileColumn<T, kTileVectors>(p, rows, done * w);
  switch (vectors - done) {
  case 3:
    if constexpr (kTileVectors > 3)
      tileColumn<T, 3>(p, rows, done * w);
    break;
  case 2:
    if constexpr (kTileVectors > 2)
      tileColumn<T, 2>(p, rows, done * w);
    break;
  case 1:
    tileColumn<T, 1>(p, rows, done * w);
    break;
  default:
    break;
  }
}

} // namespace DYNA_ISA
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_MICROKERNEL_H
