//===- VectorMath.h - Functions of vectors, without libm -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Under f32 and bf16 these are polynomials, accurate to a few units in the last
// place where training looks; a call to libm would cost fifty times as much.
// Under f64, where accuracy is the point, `exp` and `erfc` are libm's.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_VECTORMATH_H
#define DYNA_CODEGEN_ROWS_VECTORMATH_H

#include "codegen/rows/CodeBuilder.h"

namespace mlir::dyna::rows {

/// e^x. In f32, x is first brought into [-87.3, 88.3].
Value emitExp(CodeBuilder &code, Value x);

/// 1 / (1 + 2^t).
Value emitLogistic2(CodeBuilder &code, Value t);

/// 1 / (1 + e^-x).
Value emitSigmoid(CodeBuilder &code, Value x);

/// The normal distribution function, erfc(-x / sqrt 2) / 2: relatively accurate
/// in the left tail too.
Value emitNormalCdf(CodeBuilder &code, Value x);

/// Sine and cosine of `angle` (a vector of f64, of size up to 2^40) as vectors
/// of `type` (f32 or f64).
std::pair<Value, Value> emitSinCos(CodeBuilder &code, Value angle, Type type);

// The functions of runtime/abi/Random.h, on i64 scalars and i32 vectors.
Value emitMix64(CodeBuilder &code, Value z);
Value emitMix32(CodeBuilder &code, Value x);
Value emitRandomOpKey(CodeBuilder &code, Value seed, Value step, Value layer,
                      int64_t instance);
Value emitRandomRowKey(CodeBuilder &code, Value opKey, Value sample,
                       Value position);
/// Random bits for the `width` features of a row from number `first` on.
Value emitRandomElements(CodeBuilder &code, Value rowKey, Value first,
                         int64_t width);

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_VECTORMATH_H
