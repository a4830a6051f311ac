//===- CodeBuilder.cpp - Builds scalar and vector code --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/rows/CodeBuilder.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include "runtime/abi/Abi.h"
#include <numeric>

using namespace mlir;
using namespace mlir::dyna::rows;

static bool isFloat(Value value) {
  return isa<FloatType>(getElementTypeOrSelf(value.getType()));
}

/// Returns `type`, with its element type replaced.
static Type withElement(Type type, Type element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return VectorType::get(vector.getShape(), element);
  return element;
}

int64_t mlir::dyna::rows::sizeOf(Type element) {
  return element.getIntOrFloatBitWidth() / 8;
}

int64_t mlir::dyna::rows::alignmentOf(const Piece &piece, int64_t rowElements,
                                      Type element) {
  int64_t size = sizeOf(element);
  return std::gcd(std::gcd(piece.granularity * size, rowElements * size),
                  static_cast<int64_t>(DYNA_BLOCK_ALIGNMENT));
}

//===----------------------------------------------------------------------===//
// Constants
//===----------------------------------------------------------------------===//

static TypedAttr splatAttr(Type type, Attribute element) {
  if (auto vector = dyn_cast<VectorType>(type))
    return DenseElementsAttr::get(vector, element);
  return cast<TypedAttr>(element);
}

Value CodeBuilder::constant(Type type, int64_t value) {
  unsigned bits = getElementTypeOrSelf(type).getIntOrFloatBitWidth();
  APInt integer(bits, static_cast<uint64_t>(value), /*isSigned=*/true,
                /*implicitTrunc=*/true);
  return arith::ConstantOp::create(
      *this,
      splatAttr(type, getIntegerAttr(getElementTypeOrSelf(type), integer)));
}

Value CodeBuilder::constant(Type type, double value) {
  Type element = getElementTypeOrSelf(type);
  return arith::ConstantOp::create(
      *this, splatAttr(type, getFloatAttr(element, value)));
}

Value CodeBuilder::null() { return LLVM::ZeroOp::create(*this, pointerType()); }

//===----------------------------------------------------------------------===//
// Arithmetic
//===----------------------------------------------------------------------===//

Value CodeBuilder::add(Value lhs, Value rhs) {
  if (isFloat(lhs))
    return arith::AddFOp::create(*this, lhs, rhs);
  return arith::AddIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::sub(Value lhs, Value rhs) {
  if (isFloat(lhs))
    return arith::SubFOp::create(*this, lhs, rhs);
  return arith::SubIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::mul(Value lhs, Value rhs) {
  if (isFloat(lhs))
    return arith::MulFOp::create(*this, lhs, rhs);
  return arith::MulIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::div(Value lhs, Value rhs) {
  if (isFloat(lhs))
    return arith::DivFOp::create(*this, lhs, rhs);
  return arith::DivSIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::neg(Value value) {
  return arith::NegFOp::create(*this, value);
}

Value CodeBuilder::fma(Value lhs, Value rhs, Value addend) {
  return math::FmaOp::create(*this, lhs, rhs, addend);
}

Value CodeBuilder::sqrt(Value value) {
  return math::SqrtOp::create(*this, value);
}

Value CodeBuilder::bitXor(Value lhs, Value rhs) {
  return arith::XOrIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::bitAnd(Value lhs, Value rhs) {
  return arith::AndIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::bitOr(Value lhs, Value rhs) {
  return arith::OrIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::shiftLeft(Value value, int64_t bits) {
  return arith::ShLIOp::create(*this, value, constant(value.getType(), bits));
}

Value CodeBuilder::shiftRight(Value value, int64_t bits) {
  return arith::ShRUIOp::create(*this, value, constant(value.getType(), bits));
}

Value CodeBuilder::min(Value lhs, Value rhs) {
  return arith::MinSIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::max(Value lhs, Value rhs) {
  return arith::MaxSIOp::create(*this, lhs, rhs);
}

Value CodeBuilder::roundUp(Value value, int64_t multiple) {
  return mul(ceilDiv(value, i64(multiple)), i64(multiple));
}

Value CodeBuilder::ceilDiv(Value value, Value divisor) {
  Value sum = add(value, sub(divisor, i64(1)));
  return arith::DivUIOp::create(*this, sum, divisor);
}

//===----------------------------------------------------------------------===//
// Comparison and conversion
//===----------------------------------------------------------------------===//

Value CodeBuilder::less(Value lhs, Value rhs) {
  if (isFloat(lhs))
    return arith::CmpFOp::create(*this, arith::CmpFPredicate::OLT, lhs, rhs);
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, lhs, rhs);
}

Value CodeBuilder::lessUnsigned(Value lhs, Value rhs) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::ult, lhs, rhs);
}

Value CodeBuilder::equal(Value lhs, Value rhs) {
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, lhs, rhs);
}

Value CodeBuilder::isNan(Value value) {
  return arith::CmpFOp::create(*this, arith::CmpFPredicate::UNO, value, value);
}

Value CodeBuilder::isNull(Value pointer) {
  return LLVM::ICmpOp::create(*this, LLVM::ICmpPredicate::eq, pointer, null());
}

Value CodeBuilder::samePointer(Value lhs, Value rhs) {
  return LLVM::ICmpOp::create(*this, LLVM::ICmpPredicate::eq, lhs, rhs);
}

Value CodeBuilder::select(Value condition, Value yes, Value no) {
  return arith::SelectOp::create(*this, condition, yes, no);
}

Value CodeBuilder::splat(Value scalar, int64_t width) {
  return vector::BroadcastOp::create(
      *this, VectorType::get(width, scalar.getType()), scalar);
}

Value CodeBuilder::bitcast(Value value, Type type) {
  return arith::BitcastOp::create(*this, withElement(value.getType(), type),
                                  value);
}

Value CodeBuilder::truncate(Value value, Type type) {
  return arith::TruncIOp::create(*this, withElement(value.getType(), type),
                                 value);
}

Value CodeBuilder::zeroExtend(Value value, Type type) {
  return arith::ExtUIOp::create(*this, withElement(value.getType(), type),
                                value);
}

Value CodeBuilder::convertFloat(Value value, Type type) {
  unsigned from = getElementTypeOrSelf(value.getType()).getIntOrFloatBitWidth();
  unsigned to = type.getIntOrFloatBitWidth();
  if (from == to)
    return value;
  if (from < to)
    return arith::ExtFOp::create(*this, withElement(value.getType(), type),
                                 value);
  return arith::TruncFOp::create(*this, withElement(value.getType(), type),
                                 value);
}

Value CodeBuilder::convertToFloat(Value integer, Type type) {
  return arith::SIToFPOp::create(*this, withElement(integer.getType(), type),
                                 integer);
}

Value CodeBuilder::horizontalSum(Value vector) {
  // Reassociation allows the tree in which every instruction set adds.
  return vector::ReductionOp::create(*this, vector::CombiningKind::ADD, vector,
                                     arith::FastMathFlags::reassoc);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value CodeBuilder::offset(Value pointer, Value index, Type element) {
  // Addresses do not depend on the type of the data, only on its width.
  Type unit = getIntegerType(element.getIntOrFloatBitWidth());
  return LLVM::GEPOp::create(*this, pointerType(), unit, pointer,
                             ArrayRef<LLVM::GEPArg>{index},
                             LLVM::GEPNoWrapFlags::inbounds);
}

Value CodeBuilder::offsetBytes(Value pointer, int64_t bytes) {
  if (bytes == 0)
    return pointer;
  return LLVM::GEPOp::create(
      *this, pointerType(), getIntegerType(8), pointer,
      ArrayRef<LLVM::GEPArg>{static_cast<int32_t>(bytes)},
      LLVM::GEPNoWrapFlags::inbounds);
}

Value CodeBuilder::load(Value pointer, Type type, int64_t alignment) {
  return LLVM::LoadOp::create(*this, type, pointer, alignment);
}

void CodeBuilder::store(Value value, Value pointer, int64_t alignment) {
  LLVM::StoreOp::create(*this, value, pointer, alignment);
}

Value CodeBuilder::loadField(Value pointer, int64_t bytes, Type type) {
  return load(offsetBytes(pointer, bytes), type);
}

void CodeBuilder::storeField(Value value, Value pointer, int64_t bytes) {
  store(value, offsetBytes(pointer, bytes));
}

Value CodeBuilder::stack(int64_t bytes, int64_t alignment) {
  auto function =
      getInsertionBlock()->getParent()->getParentOfType<LLVM::LLVMFuncOp>();
  InsertionGuard guard(*this);
  setInsertionPointToStart(&function.getBody().front());
  Value one = LLVM::ConstantOp::create(*this, i64Type(), getI64IntegerAttr(1));
  Type storage = LLVM::LLVMArrayType::get(getIntegerType(8), bytes);
  return LLVM::AllocaOp::create(*this, pointerType(), storage, one, alignment);
}

/// Returns the bits of a vector of f32 rounded to bf16, to nearest even.
static Value roundToBF16(CodeBuilder &code, Value vector) {
  Value bits = code.bitcast(vector, code.i32Type());
  Type type = bits.getType();
  Value odd =
      code.bitAnd(code.shiftRight(bits, 16), code.constant(type, int64_t(1)));
  Value rounded =
      code.add(bits, code.add(odd, code.constant(type, int64_t(0x7FFF))));
  // Rounding could carry a NaN's mantissa into infinity, so make the NaN quiet.
  Value quiet = code.bitOr(bits, code.constant(type, int64_t(0x400000)));
  Value high =
      code.shiftRight(code.select(code.isNan(vector), quiet, rounded), 16);
  return code.truncate(high, code.getIntegerType(16));
}

Value CodeBuilder::loadElements(Value pointer, Type element, int64_t width,
                                int64_t alignment) {
  if (!element.isBF16())
    return load(pointer, VectorType::get(width, element), alignment);
  Value bits =
      load(pointer, VectorType::get(width, getIntegerType(16)), alignment);
  return bitcast(shiftLeft(zeroExtend(bits, i32Type()), 16), getF32Type());
}

void CodeBuilder::storeElements(Value vector, Value pointer, Type element,
                                int64_t alignment, bool streaming) {
  if (element.isBF16())
    vector = traits.roundsToBF16 ? convertFloat(vector, element)
                                 : roundToBF16(*this, vector);
  auto type = cast<VectorType>(vector.getType());
  int64_t bytes = type.getNumElements() * sizeOf(type.getElementType());
  LLVM::StoreOp::create(*this, vector, pointer, alignment, /*isVolatile=*/false,
                        /*isNonTemporal=*/streaming && alignment >= bytes);
}

//===----------------------------------------------------------------------===//
// Loops
//===----------------------------------------------------------------------===//

void CodeBuilder::forLoop(Value begin, Value end, int64_t step,
                          function_ref<void(Value)> body) {
  forLoop(begin, end, step, {}, [&](Value index, ValueRange) {
    body(index);
    return SmallVector<Value>();
  });
}

SmallVector<Value>
CodeBuilder::forLoop(Value begin, Value end, int64_t step, ValueRange carried,
                     function_ref<SmallVector<Value>(Value, ValueRange)> body) {
  auto loop = scf::ForOp::create(*this, begin, end, i64(step), carried);
  InsertionGuard guard(*this);
  // A loop without carried values already has a terminator, so remove that.
  if (!loop.getBody()->empty())
    loop.getBody()->back().erase();
  setInsertionPointToEnd(loop.getBody());
  SmallVector<Value> next =
      body(loop.getInductionVar(), loop.getRegionIterArgs());
  scf::YieldOp::create(*this, next);
  return llvm::to_vector_of<Value>(loop.getResults());
}

void CodeBuilder::ifThen(Value condition, function_ref<void()> then) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/false);
  InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  then();
}

void CodeBuilder::ifThenElse(Value condition, function_ref<void()> then,
                             function_ref<void()> otherwise) {
  auto branch = scf::IfOp::create(*this, condition, /*withElseRegion=*/true);
  InsertionGuard guard(*this);
  setInsertionPointToStart(branch.thenBlock());
  then();
  setInsertionPointToStart(branch.elseBlock());
  otherwise();
}

void CodeBuilder::forColumns(int64_t count, int64_t width, int64_t unroll,
                             function_ref<void(ArrayRef<Piece>)> body) {
  sumColumns(count, width, unroll, /*sums=*/0, Type(),
             [&](ArrayRef<Piece> pieces) {
               body(pieces);
               return SmallVector<Value>();
             });
}

SmallVector<Value> CodeBuilder::sumColumns(
    int64_t count, int64_t width, int64_t unroll, unsigned sums, Type type,
    function_ref<SmallVector<Value>(ArrayRef<Piece>)> body) {
  int64_t inLoop = count / (width * unroll) * unroll * width;
  bool useLoop = inLoop > width * unroll;
  SmallVector<Value> totals; // unroll * sums vectors
  for (unsigned i = 0; i < sums * unroll; ++i)
    totals.push_back(constant(VectorType::get(width, type), 0.0));
  auto accumulate = [&](MutableArrayRef<Value> into, ArrayRef<Value> terms) {
    for (auto [total, term] : llvm::zip(into, terms))
      total = add(total, term);
  };
  auto turn = [&](Value column, ValueRange carried) {
    SmallVector<Piece> pieces;
    for (int64_t u = 0; u < unroll; ++u)
      pieces.push_back(
          {u == 0 ? column : add(column, i64(u * width)), width, width});
    SmallVector<Value> next(carried);
    accumulate(next, body(pieces));
    return next;
  };
  if (useLoop)
    totals = forLoop(i64(0), i64(inLoop), unroll * width, totals, turn);
  else if (inLoop > 0)
    totals = turn(i64(0), totals);

  int64_t column = inLoop;
  for (int64_t u = 0; column + width <= count; column += width, ++u)
    accumulate(MutableArrayRef(totals).slice(u * sums, sums),
               body(Piece{i64(column), width, std::gcd(column, width)}));

  SmallVector<Value> results;
  for (unsigned sum = 0; sum < sums; ++sum) {
    Value vector = totals[sum];
    for (int64_t u = 1; u < unroll; ++u)
      vector = add(vector, totals[u * sums + sum]);
    results.push_back(horizontalSum(vector));
  }
  for (int64_t narrow = width / 2; narrow >= 1; narrow /= 2) {
    if (column + narrow > count)
      continue;
    SmallVector<Value> terms =
        body(Piece{i64(column), narrow, std::gcd(column, narrow)});
    for (auto [result, term] : llvm::zip(results, terms))
      result = add(result, horizontalSum(term));
    column += narrow;
  }
  return results;
}
