//===- ProductClass.h - Groups products that share an algorithm -*- C++ -*-===//
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

/// Returns the name of the function: "matmul_bf16_f32".
const char *nameOf(ProductKind kind);
inline int64_t operandBytes(ProductKind kind) {
  return kind == ProductKind::F64 ? 8 : kind == ProductKind::F32 ? 4 : 2;
}
inline int64_t resultBytes(ProductKind kind) {
  return kind == ProductKind::F64 ? 8 : kind == ProductKind::Bf16 ? 2 : 4;
}

/// Rounds tokens up to one of four sizes between two powers of two.
int64_t roundTokens(int64_t tokens);

/// Properties that determine the algorithm of a product. Micro-batches are
/// ragged. So the size that counts tokens is rounded up, to a fourth of its
/// power of two. It is m, or k if A is transposed (weight gradients). The other
/// sizes are those of layers, and few. Addresses count only by the alignment
/// that blocks of the arena promise.
struct ProductClass {
  ProductKind kind = ProductKind::F32;
  bool transposeA = false, transposeB = false, accumulate = false;
  int64_t m = 0, n = 0, k = 0;
  int64_t lda = 0, ldb = 0, ldc = 0;          ///< elements
  int64_t alignA = 0, alignB = 0, alignC = 0; ///< bytes
  /// DYNA_EPILOGUE_*; fields that it does not use are 0.
  int64_t epilogue = DYNA_EPILOGUE_NONE, auxStride = 0;
  int64_t alignBias = 0, alignAux = 0;

  /// Returns the class of a product without sizes of 0.
  static ProductClass of(ProductKind kind, const dyna_matmul &p);

  /// Convert to and from text: numbers separated by blanks, four more with an
  /// epilogue.
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
