//===- CodeBuilder.h - Builds scalar and vector code ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Generated code works on raw pointers and on vectors of a width that is known
// at compile time. All integers that index or count are i64, never `index`. So
// every block argument has an LLVM type, and loops can stand inside `llvm.func`
// from the start.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_CODEGEN_ROWS_CODEBUILDER_H
#define DYNA_CODEGEN_ROWS_CODEBUILDER_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/ImplicitLocOpBuilder.h"

namespace mlir::dyna::rows {

/// Part of a row: `width` columns from `column` on. `column` is a multiple of
/// `granularity`; with granularity 0 it is 0.
struct Piece {
  Value column;
  int64_t width;
  int64_t granularity;
  /// Number of the piece, if a thread has the same pieces of every row.
  int64_t number = 0;
  /// True (i1) if results of the piece count; null: they do. A piece that does
  /// not count loads another one, in bounds.
  Value active = {};
};

/// Abilities of the machine that runs the code.
struct CodeTraits {
  bool roundsToBF16 = false; ///< f32 to bf16
  bool hasLibm = true; ///< functions in f64; otherwise they are polynomials
};

class CodeBuilder : public ImplicitLocOpBuilder {
public:
  using ImplicitLocOpBuilder::ImplicitLocOpBuilder;

  const CodeTraits &getTraits() const { return traits; }
  void setTraits(const CodeTraits &given) { traits = given; }

  // Types.
  Type i32Type() { return getIntegerType(32); }
  Type i64Type() { return getIntegerType(64); }
  Type f64Type() { return getF64Type(); }
  Type pointerType() { return LLVM::LLVMPointerType::get(getContext()); }

  // Constants. `type` may be a scalar or a vector of them.
  Value i32(int64_t value) { return constant(i32Type(), value); }
  Value i64(int64_t value) { return constant(i64Type(), value); }
  Value constant(Type type, int64_t value);
  Value constant(Type type, double value);
  Value null();

  // Arithmetic, on integers or floats, scalars or vectors.
  Value add(Value lhs, Value rhs);
  Value sub(Value lhs, Value rhs);
  Value mul(Value lhs, Value rhs);
  Value div(Value lhs, Value rhs);
  Value neg(Value value);
  Value add(Value lhs, double rhs) { return add(lhs, like(lhs, rhs)); }
  Value sub(Value lhs, double rhs) { return sub(lhs, like(lhs, rhs)); }
  Value mul(Value lhs, double rhs) { return mul(lhs, like(lhs, rhs)); }
  Value fma(Value lhs, Value rhs, Value addend);
  Value fma(Value lhs, Value rhs, double addend) {
    return fma(lhs, rhs, like(lhs, addend));
  }
  Value fma(Value lhs, double rhs, double addend) {
    return fma(lhs, like(lhs, rhs), like(lhs, addend));
  }
  Value sqrt(Value value);

  // Integers only.
  Value bitXor(Value lhs, Value rhs);
  Value bitAnd(Value lhs, Value rhs);
  Value bitOr(Value lhs, Value rhs);
  Value shiftLeft(Value value, int64_t bits);
  Value shiftRight(Value value, int64_t bits); ///< logical
  Value min(Value lhs, Value rhs);             ///< signed
  Value max(Value lhs, Value rhs);
  /// Rounds `value` up to a multiple of `multiple`; not for negative values.
  Value roundUp(Value value, int64_t multiple);
  /// Returns `(value + divisor - 1) / divisor`; not for negative values.
  Value ceilDiv(Value value, Value divisor);

  // Comparison (signed; floats ordered).
  Value less(Value lhs, Value rhs);
  Value lessUnsigned(Value lhs, Value rhs);
  Value equal(Value lhs, Value rhs);
  Value isNan(Value value);
  Value isNull(Value pointer);
  Value samePointer(Value lhs, Value rhs);
  Value select(Value condition, Value yes, Value no);

  // Conversion.
  Value splat(Value scalar, int64_t width);
  Value bitcast(Value value, Type type);
  Value truncate(Value value, Type type);   ///< integers
  Value zeroExtend(Value value, Type type); ///< integers
  Value convertFloat(Value value, Type type);
  Value convertToFloat(Value integer, Type type); ///< signed
  /// Returns the sum of a vector's elements; halves are added to halves.
  Value horizontalSum(Value vector);

  // Memory.
  /// Returns `pointer + index * bytes of element`.
  Value offset(Value pointer, Value index, Type element);
  Value offsetBytes(Value pointer, int64_t bytes);
  Value load(Value pointer, Type type, int64_t alignment = 0);
  void store(Value value, Value pointer, int64_t alignment = 0);
  Value loadField(Value pointer, int64_t bytes, Type type);
  void storeField(Value value, Value pointer, int64_t bytes);
  /// Reserves `bytes` bytes of stack, once at the function's start.
  Value stack(int64_t bytes, int64_t alignment = 64);

  /// Loads elements of f64, f32 or bf16 at `pointer` as a vector of the
  /// accumulator type. The store converts back (bf16: rounded to nearest even,
  /// NaN stays NaN).
  Value loadElements(Value pointer, Type element, int64_t width,
                     int64_t alignment);
  /// Stores with `streaming`, aligned to their size, do not read the cache line
  /// first and leave nothing in the cache.
  void storeElements(Value vector, Value pointer, Type element,
                     int64_t alignment, bool streaming = false);

  // Loops.
  void forLoop(Value begin, Value end, int64_t step,
               function_ref<void(Value)> body);
  SmallVector<Value>
  forLoop(Value begin, Value end, int64_t step, ValueRange carried,
          function_ref<SmallVector<Value>(Value, ValueRange)> body);
  void ifThen(Value condition, function_ref<void()> then);
  /// Runs `then` if `piece` counts.
  void ifActive(const Piece &piece, function_ref<void()> then) {
    piece.active ? ifThen(piece.active, then) : then();
  }
  void ifThenElse(Value condition, function_ref<void()> then,
                  function_ref<void()> otherwise);

  /// Visits columns [0, count) in vectors. A loop takes `unroll` vectors of
  /// `width` per turn. The rest follows one by one, then in descending powers
  /// of two.
  void forColumns(int64_t count, int64_t width, int64_t unroll,
                  function_ref<void(ArrayRef<Piece>)> body);

  /// Visits columns in the same way and adds up `sums` values. `body` returns,
  /// for each piece and sum, the vector to add (piece-major). The results are
  /// scalars of `type`.
  SmallVector<Value>
  sumColumns(int64_t count, int64_t width, int64_t unroll, unsigned sums,
             Type type, function_ref<SmallVector<Value>(ArrayRef<Piece>)> body);

  /// Returns a constant of `value`'s type.
  Value like(Value value, double number) {
    return constant(value.getType(), number);
  }

private:
  CodeTraits traits;
};

/// Returns the bytes of an element.
int64_t sizeOf(Type element);
inline Type elementOf(Value tensor) {
  return cast<RankedTensorType>(tensor.getType()).getElementType();
}

/// Returns the alignment of `piece` in a row of `rowElements` elements. The
/// first row of the tensor is aligned to DYNA_BLOCK_ALIGNMENT.
int64_t alignmentOf(const Piece &piece, int64_t rowElements, Type element);

} // namespace mlir::dyna::rows

#endif // DYNA_CODEGEN_ROWS_CODEBUILDER_H
