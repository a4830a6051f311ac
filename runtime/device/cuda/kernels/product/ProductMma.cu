//===- ProductMma.cu - Multiplies bf16 matrices -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Multiplies bf16 matrices if cuBLASLt is missing. Pieces of A and B are copied
// to shared memory in their own order, two stages ahead of the tensor cores.
// They are transposed when the tensor cores read them. One warp computes a sum
// over k in f32, in order. It is rounded once, together with the addend.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/Gpu.h"

namespace dyna {
namespace gpu {
namespace product {

/// Begins to copy `rows` x `columns` elements, and zeros where the matrix, `there`
/// x `width`, ends. Rows that are not aligned are copied at once.
template <int rows, int columns>
DYNA_GPU void loadBf16(uint16_t (&to)[rows][columns + 8], const uint16_t *from,
                       int64_t stride, int32_t there, int32_t width,
                       bool isAligned) {
  constexpr int perRow = columns / 8;
  // Not unrolled: addresses of several passes would cost registers.
#pragma unroll 1
  for (int pass = 0; pass < rows * perRow / kMmaProductThreads; ++pass) {
    const int i = threadIndex() + pass * kMmaProductThreads;
    const int row = i / perRow, column = i % perRow * 8;
    uint16_t *target = &to[row][column];
    const uint16_t *source = from + row * stride + column;
    if (isAligned && column + 8 <= width) {
      copyAsync(target, source, row < there);
      continue;
    }
#pragma unroll 1
    for (int j = 0; j < 8; ++j)
      target[j] = row < there && column + j < width ? source[j] : uint16_t(0);
  }
}

/// Loads a piece of op(X), whose rows are along k unless `isAcross`.
template <bool isAcross>
DYNA_GPU void loadPiece(MmaProductPiece &piece, const void *x, int64_t stride,
                        int32_t firstRow, int32_t rows, int32_t first,
                        int32_t depth, bool isAligned) {
  const uint16_t *from = static_cast<const uint16_t *>(x);
  if constexpr (isAcross)
    loadBf16<kMmaProductDepth, kMmaProductTile>(
        piece.across, from + first * stride + firstRow, stride, depth - first,
        rows - firstRow, isAligned);
  else
    loadBf16<kMmaProductTile, kMmaProductDepth>(
        piece.along, from + firstRow * stride + first, stride, rows - firstRow,
        depth - first, isAligned);
}

/// Loads 16 rows of op(A), from `row`, and 16 of k, from `l`, as left operand.
template <bool isAcross>
DYNA_GPU void loadLeft(uint32_t (&a)[4], const MmaProductPiece &piece, int row,
                       int l) {
  const int lane = threadIndex() % 32;
  if constexpr (isAcross)
    loadMatricesTransposed(
        a, &piece.across[l + lane / 16 * 8 + lane % 8][row + lane / 8 % 2 * 8]);
  else
    loadMatrices(a, &piece.along[row + lane % 16][l + lane / 16 * 8]);
}

/// Loads 16 columns of op(B), from `column`, and 16 of k: two right operands.
template <bool isAcross>
DYNA_GPU void loadRight(uint32_t (&b)[4], const MmaProductPiece &piece,
                        int column, int l) {
  const int lane = threadIndex() % 32;
  if constexpr (isAcross)
    loadMatricesTransposed(
        b, &piece.across[l + lane % 16][column + lane / 16 * 8]);
  else
    loadMatrices(
        b,
        &piece.along[column + lane % 8 + lane / 16 * 8][l + lane / 8 % 2 * 8]);
}

DYNA_GPU void storePair(const ProductArguments &args, int32_t row,
                        int32_t column, float first, float second) {
  const int64_t at = row * args.ldc + column;
  const bool hasSecond = column + 1 < args.n;
  if (args.isWide) {
    float *to = static_cast<float *>(args.c) + at;
    if (args.accumulate) {
      first += to[0];
      if (hasSecond)
        second += to[1];
    }
    struct alignas(8) Pair {
      float first, second;
    };
    if (hasSecond && args.hasPairs) {
      *reinterpret_cast<Pair *>(aligned<8>(to)) = Pair{first, second};
      return;
    }
    to[0] = first;
    if (hasSecond)
      to[1] = second;
    return;
  }
  uint16_t *to = static_cast<uint16_t *>(args.c) + at;
  if (args.accumulate) {
    first += widenBf16(to[0]);
    if (hasSecond)
      second += widenBf16(to[1]);
  }
  const uint32_t pair = packBf16(first, second);
  if (hasSecond && args.hasPairs) {
    *reinterpret_cast<uint32_t *>(aligned<4>(to)) = pair;
    return;
  }
  to[0] = static_cast<uint16_t>(pair);
  if (hasSecond)
    to[1] = static_cast<uint16_t>(pair >> 16);
}

template <bool transposeA, bool transposeB>
DYNA_GPU void multiplyBf16(const ProductArguments &args,
                           MmaProductShared &shared) {
  constexpr int kTile = kMmaProductTile, kDepth = kMmaProductDepth;
  constexpr int kStages = kMmaProductStages;
  const int32_t down = (args.m + kTile - 1) / kTile;
  const int32_t firstRow = blockIndex() % down * kTile;
  const int32_t firstColumn = blockIndex() / down * kTile;
  const int warp = threadIndex() / 32, lane = threadIndex() % 32;
  const int warpRow = warp % 4 * 32, warpColumn = warp / 4 * 64;
  const int32_t pieces = (args.k + kDepth - 1) / kDepth;
  // Start a group even if no piece is left, because waits count groups.
  auto load = [&](int32_t piece) {
    if (piece < pieces) {
      MmaProductShared::Stage &stage = shared.stages[piece % kStages];
      loadPiece<transposeA>(stage.a, args.a, args.lda, firstRow, args.m,
                            piece * kDepth, args.k, args.isAligned);
      loadPiece<!transposeB>(stage.b, args.b, args.ldb, firstColumn, args.n,
                             piece * kDepth, args.k, args.isAligned);
    }
    commitCopies();
  };
  float sums[2][8][4];
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int e = 0; e < 4; ++e)
        sums[i][j][e] = 0;
#pragma unroll
  for (int piece = 0; piece < kStages - 1; ++piece)
    load(piece);
  for (int32_t piece = 0; piece < pieces; ++piece) {
    awaitCopies<kStages - 2>();
    // All threads have copied this piece and finished the one before it, so the
    // next copy may overwrite that one.
    barrier();
    load(piece + kStages - 1);
    const MmaProductShared::Stage &stage = shared.stages[piece % kStages];
#pragma unroll
    for (int l = 0; l < kDepth; l += 16) {
      uint32_t left[2][4];
#pragma unroll
      for (int i = 0; i < 2; ++i)
        loadLeft<transposeA>(left[i], stage.a, warpRow + 16 * i, l);
#pragma unroll
      for (int j = 0; j < 4; ++j) {
        uint32_t right[4];
        loadRight<!transposeB>(right, stage.b, warpColumn + 16 * j, l);
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          multiplyAdd(sums[i][2 * j], left[i], right[0], right[1]);
          multiplyAdd(sums[i][2 * j + 1], left[i], right[2], right[3]);
        }
      }
    }
  }
  awaitCopies<0>();
#pragma unroll
  for (int i = 0; i < 2; ++i)
#pragma unroll
    for (int j = 0; j < 8; ++j)
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        const int32_t row = firstRow + warpRow + 16 * i + lane / 4 + 8 * half;
        const int32_t column =
            firstColumn + warpColumn + 8 * j + 2 * (lane % 4);
        if (row < args.m && column < args.n)
          storePair(args, row, column, sums[i][j][2 * half],
                    sums[i][j][2 * half + 1]);
      }
}

} // namespace product
} // namespace gpu
} // namespace dyna

DYNA_KERNEL(product_bf16_nn) {
  dyna::gpu::product::multiplyBf16<false, false>(args, shared);
}
DYNA_KERNEL(product_bf16_nt) {
  dyna::gpu::product::multiplyBf16<false, true>(args, shared);
}
DYNA_KERNEL(product_bf16_tn) {
  dyna::gpu::product::multiplyBf16<true, false>(args, shared);
}
DYNA_KERNEL(product_bf16_tt) {
  dyna::gpu::product::multiplyBf16<true, true>(args, shared);
}
