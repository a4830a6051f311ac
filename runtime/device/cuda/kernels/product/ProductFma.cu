//===- ProductFma.cu - Multiplies f32 and f64 matrices ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For where cuBLASLt is missing: tiles of A and B pass through shared memory, sums
// over k are taken by one thread, in order.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/Gpu.h"

namespace dyna {
namespace gpu {
namespace product {

/// Copies a piece of op(X) to shared memory, [k][row], and zeros where there is
/// nothing. Element (row, l) of op(X) lies at `x[row * rowStride + l * stride]`,
/// and one of the strides is 1: neighbours among threads are so in memory.
template <typename T>
DYNA_GPU void loadPiece(T (&piece)[kFmaProductDepth][kFmaProductTile + 1],
                        const T *x, int64_t rowStride, int64_t stride,
                        int32_t firstRow, int32_t rows, int32_t first,
                        int32_t depth) {
  for (int i = threadIndex(); i < kFmaProductDepth * kFmaProductTile;
       i += kFmaProductThreads) {
    int row = stride == 1 ? i / kFmaProductDepth : i % kFmaProductTile;
    int l = stride == 1 ? i % kFmaProductDepth : i / kFmaProductTile;
    bool isThere = firstRow + row < rows && first + l < depth;
    piece[l][row] =
        isThere ? x[(firstRow + row) * rowStride + (first + l) * stride] : T(0);
  }
}

template <typename T>
DYNA_GPU void multiply(const ProductArguments &args,
                       FmaProductShared<T> &shared) {
  const int32_t down = (args.m + kFmaProductTile - 1) / kFmaProductTile;
  const int32_t firstRow = blockIndex() % down * kFmaProductTile;
  const int32_t firstColumn = blockIndex() / down * kFmaProductTile;
  const int row = threadIndex() / 16, column = threadIndex() % 16;
  const T *a = static_cast<const T *>(args.a);
  const T *b = static_cast<const T *>(args.b);
  T sums[4][4];
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j)
      sums[i][j] = 0;
  for (int32_t first = 0; first < args.k; first += kFmaProductDepth) {
    loadPiece(shared.a, a, args.transposeA ? 1 : args.lda,
              args.transposeA ? args.lda : 1, firstRow, args.m, first, args.k);
    loadPiece(shared.b, b, args.transposeB ? args.ldb : 1,
              args.transposeB ? 1 : args.ldb, firstColumn, args.n, first,
              args.k);
    barrier();
#pragma unroll
    for (int l = 0; l < kFmaProductDepth; ++l) {
      T left[4], right[4];
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        left[i] = shared.a[l][row + 16 * i];
        right[i] = shared.b[l][column + 16 * i];
      }
#pragma unroll
      for (int i = 0; i < 4; ++i)
#pragma unroll
        for (int j = 0; j < 4; ++j)
          sums[i][j] += left[i] * right[j];
    }
    barrier();
  }
#pragma unroll
  for (int i = 0; i < 4; ++i)
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      int32_t r = firstRow + row + 16 * i, c = firstColumn + column + 16 * j;
      if (r >= args.m || c >= args.n)
        continue;
      T *to = static_cast<T *>(args.c) + r * args.ldc + c;
      *to = args.accumulate ? *to + sums[i][j] : sums[i][j];
    }
}

} // namespace product
} // namespace gpu
} // namespace dyna

DYNA_KERNEL(product_f32) { dyna::gpu::product::multiply<float>(args, shared); }
DYNA_KERNEL(product_f64) { dyna::gpu::product::multiply<double>(args, shared); }
