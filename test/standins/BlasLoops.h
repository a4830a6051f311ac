//===- BlasLoops.h - Products of cuBLASLt's stand-in ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_STANDINS_BLASLOOPS_H
#define DYNA_TEST_STANDINS_BLASLOOPS_H

#include "test/standins/Fibers.h"

#include <cstdint>

namespace dyna::standins {

/// Of A and B, and of C and D; sums are f32, of F64 f64.
enum class BlasTypes : int32_t { F64, F32, Bf16, Bf16F32 };

enum class BlasStage : int32_t {
  Whole,    ///< D = alpha op(A) op(B) + beta C
  Rounding, ///< the same, with the sum over k rounded to D's type half way
  Parts,    ///< the sums of the first half of k go to the workspace
  Sum,      ///< those of the second half are added, and D is written
};

/// What D is made of, from what it would be otherwise (P): rows of D have a bias
/// each.
enum class BlasEpilogue : int32_t {
  None,
  Bias,     ///< D = P + bias
  BiasGelu, ///< D = gelu(P + bias), aux = P + bias if there is one
  GeluGrad, ///< D = P gelu'(aux)
};

/// A kernel's arguments: a product, all matrices column-major.
struct BlasWork {
  BlasTypes types;
  BlasStage stage;
  int64_t m, n, k;
  int32_t transposeA, transposeB;
  int32_t isTf32;
  int32_t isOutside; ///< of device memory, which a kernel may not touch
  double alpha, beta;
  const void *a, *b, *c;
  void *d;
  int64_t lda, ldb, ldc, ldd; ///< elements from column to column
  void *workspace;            ///< m n sums
  BlasEpilogue epilogue;
  int32_t reserved;
  const void *bias; ///< m elements
  void *aux;        ///< as D
  int64_t ldAux;
};

/// With one kernel, "standin_product", of one thread.
const dyna_emulated_image &blasImage();

} // namespace dyna::standins

#endif // DYNA_TEST_STANDINS_BLASLOOPS_H
