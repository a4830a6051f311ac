//===- VectorMath.h - Computes functions of vectors without libm ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For f32 and bf16 these functions are polynomials, accurate to a few units in
// the last place in the range that training uses. A call to libm would cost
// fifty times as much. For f64, which is about accuracy, `exp` and `erfc` are
// libm's.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_VECTORMATH_H
#define DYNA_CODEGEN_ROWS_VECTORMATH_H

#include "codegen/rows/CodeBuilder.h"

namespace mlir::dyna::rows {

/// Emits e^x. In f32, x is first clamped to [-87.3, 88.3].
Value emitExp(CodeBuilder &code, Value x);

/// Emits 1 / (1 + 2^t).
Value emitLogistic2(CodeBuilder &code, Value t);

/// Emits 1 / (1 + e^-x).
Value emitSigmoid(CodeBuilder &code, Value x);

/// Emits the normal distribution function, erfc(-x / sqrt 2) / 2. Its relative
/// accuracy also holds in the left tail.
Value emitNormalCdf(CodeBuilder &code, Value x);

/// Emits sine and cosine of `angle` (a vector of f64, of size up to 2^40) as
/// vectors of `type` (f32 or f64).
std::pair<Value, Value> emitSinCos(CodeBuilder &code, Value angle, Type type);

// The functions of runtime/abi/Random.h, on i64 scalars and i32 vectors.
Value emitMix64(CodeBuilder &code, Value z);
Value emitMix32(CodeBuilder &code, Value x);
Value emitRandomOpKey(CodeBuilder &code, Value seed, Value step, Value layer,
                      int64_t instance);
Value emitRandomRowKey(CodeBuilder &code, Value opKey, Value sample,
                       Value position);
/// Emits random bits for the `width` features of a row from number `first` on.
Value emitRandomElements(CodeBuilder &code, Value rowKey, Value first,
                         int64_t width);

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_VECTORMATH_H
