//===- ProductArguments.h - Declares arguments ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_PRODUCTARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_PRODUCTARGUMENTS_H

#include <cstdint>

namespace dyna {
namespace gpu {

/// C[m,n] = op(A) op(B), or C += that, as dyna_matmul. Sizes are 1 to 2^31 - 1;
/// a block has one tile of C, tiles of a column of tiles one after the other.
struct ProductArguments {
  const void *a, *b;
  void *c;
  int64_t lda, ldb, ldc;
  int32_t m, n, k;
  int32_t transposeA, transposeB; ///< read by kernels of f32 and f64
  int32_t accumulate;
  // Only kernels of bf16 use these.
  int32_t isWide;    ///< C is of f32
  int32_t isAligned; ///< rows of A and B begin at multiples of 16 bytes
  int32_t hasPairs;  ///< rows of C begin at multiples of two elements
  int32_t reserved;
};

//===----------------------------------------------------------------------===//
// f32 and f64: a thread has 4 x 4 elements of a tile, 16 apart
//===----------------------------------------------------------------------===//

constexpr int kFmaProductThreads = 256;
constexpr int kFmaProductTile = 64;
constexpr int kFmaProductDepth = 16;

template <typename T> struct FmaProductShared {
  T a[kFmaProductDepth][kFmaProductTile + 1];
  T b[kFmaProductDepth][kFmaProductTile + 1];
};
using FmaProductSharedF32 = FmaProductShared<float>;
using FmaProductSharedF64 = FmaProductShared<double>;

//===----------------------------------------------------------------------===//
// Epilogues that a product cannot run itself (dyna_epilogue): a thread has one
// piece
//===----------------------------------------------------------------------===//

constexpr int kProductEpilogueThreads = 256;
constexpr int kProductEpilogueBytes = 16; ///< of a piece, if aligned

/// Applies the described epilogue to the product C, as dyna_epilogue.
struct ProductEpilogueArguments {
  void *c;
  const void *bias;
  void *aux;
  int64_t ldc, auxStride;
  int64_t m, n;
  int32_t isGelu, isGradient; ///< else only the bias is added
  int32_t isAligned; ///< pieces begin at multiples of 16 bytes everywhere
  int32_t reserved;
};

//===----------------------------------------------------------------------===//
// bf16: eight warps, each with 32 x 64 elements of a tile
//===----------------------------------------------------------------------===//

constexpr int kMmaProductThreads = 256;
constexpr int kMmaProductTile = 128;
constexpr int kMmaProductDepth = 32;
constexpr int kMmaProductStages = 3;

/// A piece of A or B as it lies in memory: `Tile` rows along k, or the other way
/// round. Rows are 16 bytes longer than what they hold: eight below each other
/// lie in different banks.
struct MmaProductPiece {
  union {
    uint16_t along[kMmaProductTile][kMmaProductDepth + 8];
    uint16_t across[kMmaProductDepth][kMmaProductTile + 8];
  };
};
struct alignas(16) MmaProductShared {
  struct Stage {
    MmaProductPiece a, b;
  } stages[kMmaProductStages];
};

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_PRODUCTARGUMENTS_H
