//===- ProductClass.h - Products that take one algorithm --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTCLASS_H
#define DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTCLASS_H

#include "runtime/abi/Kernels.h"
#include "runtime/base/error/Status.h"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace dyna::cuda {

/// The products of Kernels.h, by the types of A and B, and of C.
enum class ProductKind { F32, F64, Bf16, Bf16F32 };
inline constexpr int kProductKinds = 4;

/// "matmul_bf16_f32"
const char *nameOf(ProductKind kind);
inline int64_t operandBytes(ProductKind kind) {
  return kind == ProductKind::F64 ? 8 : kind == ProductKind::F32 ? 4 : 2;
}
inline int64_t resultBytes(ProductKind kind) {
  return kind == ProductKind::F64 ? 8 : kind == ProductKind::Bf16 ? 2 : 4;
}

/// Rounded up: there are four sizes from a power of two to the next.
int64_t roundTokens(int64_t tokens);

/// What an algorithm is chosen by. Micro-batches are ragged, so the size that
/// counts tokens (m, or k where A is transposed: weight gradients) is rounded up,
/// to a fourth of its power of two; the others are those of layers, and few.
/// Addresses count as far as blocks of the arena promise.
struct ProductClass {
  ProductKind kind = ProductKind::F32;
  bool transposeA = false, transposeB = false, accumulate = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;          ///< elements
  int64_t alignA = 0, alignB = 0, alignC = 0; ///< bytes
  /// DYNA_EPILOGUE_*; what it does not have is 0.
  int64_t epilogue = DYNA_EPILOGUE_NONE, auxStride = 0;
  int64_t alignBias = 0, alignAux = 0;

  /// `p` has no size of 0.
  static ProductClass of(ProductKind kind, const dyna_matmul &p);

  /// Numbers with a blank between them, four more with an epilogue; and back.
  std::string text() const;
  static StatusOr<ProductClass> parse(std::string_view text);

  std::array<int64_t, 17> key() const {
    return {static_cast<int64_t>(kind),
            transposeA,
            transposeB,
            accumulate,
            m,
            n,
            k,
            lda,
            ldb,
            ldc,
            alignA,
            alignB,
            alignC,
            epilogue,
            auxStride,
            alignBias,
            alignAux};
  }
  friend bool operator<(const ProductClass &a, const ProductClass &b) {
    return a.key() < b.key();
  }
  friend bool operator==(const ProductClass &a, const ProductClass &b) {
    return a.key() == b.key();
  }
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_PRODUCTCLASS_H
