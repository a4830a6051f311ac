//===- VectorMath.cpp - Computes functions of vectors without libm --------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "codegen/rows/VectorMath.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <cmath>

using namespace mlir;
using namespace mlir::dyna::rows;

static bool isF64(Value value) {
  return getElementTypeOrSelf(value.getType()).isF64();
}

/// Emits Horner's rule; the highest coefficient comes first.
static Value polynomial(CodeBuilder &code, Value x,
                        ArrayRef<double> coefficients) {
  Value sum = code.like(x, coefficients.front());
  for (double coefficient : coefficients.drop_front())
    sum = code.fma(sum, x, coefficient);
  return sum;
}

//===----------------------------------------------------------------------===//
// Exponential and its relatives
//===----------------------------------------------------------------------===//

static Value atMost(CodeBuilder &code, Value x, double high) {
  // This order of the operands keeps a NaN.
  Value limit = code.like(x, high);
  return code.select(code.less(limit, x), limit, x);
}

static Value atLeast(CodeBuilder &code, Value x, double low) {
  Value limit = code.like(x, low);
  return code.select(code.less(x, limit), limit, x);
}

// Adding 1.5 * 2^23 + 127 to a small number rounds it to an integer n and
// leaves n + 127 in the low bits. Shifted into the exponent, they are 2^n.
// Unlike a conversion to integer, this is defined for NaN.
static constexpr double exponentMagic = 12582912.0 + 127.0;

static Value emitPowerOfTwo(CodeBuilder &code, Value shifted) {
  Value bits = code.shiftLeft(code.bitcast(shifted, code.i32Type()), 23);
  return code.bitcast(bits, code.getF32Type());
}

/// Computes e^x = 2^n e^r for x = n ln 2 + r and |r| <= ln 2 / 2. For e^r it
/// uses a polynomial through seven Chebyshev points of that interval, with a
/// relative error of 2e-8.
static Value emitExpF32(CodeBuilder &code, Value x) {
  x = atMost(code, atLeast(code, x, -87.3), 88.3);
  Value shifted = code.fma(x, 1.0 / M_LN2, exponentMagic);
  Value n = code.sub(shifted, exponentMagic);
  // ln 2 in two parts, the first with trailing zeros so that n * part is exact.
  Value r = code.fma(n, code.like(x, -0.693359375), x);
  r = code.fma(n, code.like(x, 2.12194440054690583e-4), r);
  Value series = polynomial(code, r,
                            {0.001394113982870619, 0.008375151530209094,
                             0.04166635251956103, 0.16666415212724553,
                             0.500000004720275, 1.0000000377842206, 1.0});
  return code.mul(series, emitPowerOfTwo(code, shifted));
}

/// Computes e^x in f64 by Taylor's series to the 13th power, whose first
/// omitted term is below 4e-18.
static Value emitExpF64(CodeBuilder &code, Value x) {
  constexpr double magic = 6755399441055744.0 + 1023.0; // 1.5 * 2^52 + 1023
  x = atMost(code, atLeast(code, x, -708.3), 709.0);
  Value shifted = code.fma(x, M_LOG2E, magic);
  Value n = code.sub(shifted, magic);
  Value r = code.fma(n, code.like(x, -0.693147180369123816490), x);
  r = code.fma(n, code.like(x, -1.90821492927058770002e-10), r);
  SmallVector<double> series;
  for (int power = 13; power >= 0; --power)
    series.push_back(1.0 / std::tgamma(power + 1.0));
  Value bits = code.shiftLeft(code.bitcast(shifted, code.i64Type()), 52);
  return code.mul(polynomial(code, r, series),
                  code.bitcast(bits, code.f64Type()));
}

Value mlir::dyna::rows::emitExp(CodeBuilder &code, Value x) {
  if (isF64(x))
    return code.getTraits().hasLibm ? math::ExpOp::create(code, x).getResult()
                                    : emitExpF64(code, x);
  return emitExpF32(code, x);
}

/// Emits 1 / x for x in [1, 2^125], a quarter of a division's cost. Subtracting
/// the bits gives 1 / x within 5 %; a cubic and a quadratic Newton step leave
/// 2e-8.
static Value emitReciprocalF32(CodeBuilder &code, Value x) {
  Value bits = code.bitcast(x, code.i32Type());
  Value y = code.bitcast(
      code.sub(code.constant(bits.getType(), int64_t(0x7EF31000)), bits),
      code.getF32Type());
  Value minusX = code.neg(x);
  Value error = code.fma(minusX, y, 1.0);
  y = code.fma(code.fma(error, error, error), y, y);
  error = code.fma(minusX, y, 1.0);
  return code.fma(error, y, y);
}

Value mlir::dyna::rows::emitLogistic2(CodeBuilder &code, Value t) {
  if (isF64(t)) {
    Value power = emitExp(code, code.mul(t, M_LN2));
    return code.div(code.like(t, 1.0), code.add(power, 1.0));
  }
  // Results below 2^-124 do not matter, and the limit keeps the reciprocal in
  // range.
  t = atMost(code, atLeast(code, t, -126.0), 124.0);
  Value shifted = code.add(t, exponentMagic);
  Value r = code.sub(t, code.sub(shifted, exponentMagic));
  Value series = polynomial(code, r,
                            {0.00015461491118587997, 0.0013400481795967632,
                             0.009618056562430853, 0.055503270925848044,
                             0.24022650922833197, 0.6931472067656993, 1.0});
  Value sum = code.fma(series, emitPowerOfTwo(code, shifted), 1.0);
  return emitReciprocalF32(code, sum);
}

Value mlir::dyna::rows::emitSigmoid(CodeBuilder &code, Value x) {
  return emitLogistic2(code, code.mul(x, -M_LOG2E));
}

/// Calls a libm function on every element.
static Value emitLibm(CodeBuilder &code, StringRef name, Value x) {
  auto type = cast<VectorType>(x.getType());
  auto module =
      code.getInsertionBlock()->getParent()->getParentOfType<ModuleOp>();
  auto callee = module.lookupSymbol<LLVM::LLVMFuncOp>(name);
  if (!callee) {
    OpBuilder::InsertionGuard guard(code);
    code.setInsertionPointToStart(module.getBody());
    Type element = type.getElementType();
    callee = LLVM::LLVMFuncOp::create(
        code, name, LLVM::LLVMFunctionType::get(element, {element}));
  }
  Value result = code.like(x, 0.0);
  for (int64_t i = 0; i < type.getNumElements(); ++i) {
    Value element = vector::ExtractOp::create(code, x, i);
    Value value =
        LLVM::CallOp::create(code, callee, ValueRange{element}).getResult();
    result = vector::InsertOp::create(code, value, result, i);
  }
  return result;
}

/// Emits Phi(x) = 1/2 + x P(x^2) / Q(x^2), fitted for |x| <= 5.3 with an error
/// below 1e-8 (iteratively reweighted least squares); f32 rounding makes that
/// 2e-7. Behind 5.3 the fit overshoots, and is cut off at 0 and 1 exactly: gelu
/// of a large negative number is 0. No exponential: a sweep over memory that is
/// not in cache should wait for the memory alone.
static Value emitNormalCdfF32(CodeBuilder &code, Value x) {
  x = atMost(code, atLeast(code, x, -5.45), 5.45);
  Value square = code.mul(x, x);
  Value numerator = polynomial(code, square,
                               {2.4050305326864854e-08, 6.379075200159712e-06,
                                0.00016033515188059968, 0.004627997348803537,
                                0.032935835584403904, 0.39894225407741496});
  Value denominator = polynomial(code, square,
                                 {1.2371695163732423e-06, 7.13525845466425e-05,
                                  0.001836575099304372, 0.02813885563443478,
                                  0.2492241255923953, 1.0});
  Value phi = code.fma(code.mul(x, numerator),
                       emitReciprocalF32(code, denominator), 0.5);
  return atMost(code, atLeast(code, phi, 0.0), 1.0);
}

/// Computes erfc(z) / 2 for z = |x| / sqrt 2, or 1 minus that. (1 + 2 z) e^(z
/// z) erfc(z) is smooth in t = (z - 3.75) / (z + 3.75) (Shepherd and
/// Laframboise 1981). This is a Chebyshev fit of it for z <= 27, with an error
/// of 3e-18.
static Value emitNormalCdfF64(CodeBuilder &code, Value x) {
  constexpr double center = 3.75;
  Value zero = code.like(x, 0.0);
  Value isNegative = code.less(x, zero);
  Value size = code.select(isNegative, code.neg(x), x);
  Value z = atMost(code, code.mul(size, M_SQRT1_2), 27.0);
  Value t = code.div(code.sub(z, center), code.add(z, center));
  Value series = polynomial(
      code, t, {-1.0095099872908544405e-9,  -5.1127090302803347311e-9,
                1.761524428874431168e-10,   4.1049165860627745324e-8,
                1.8387574099838798723e-8,   -2.6326531059668646834e-7,
                -5.3975064981547246144e-8,  1.7558606736627473345e-6,
                -9.7475103615704235134e-7,  -0.000011446446349755858885,
                0.000022384436863438539192, 0.000051649893075807211004,
                -0.00029015406689750947826, 0.00029371348953197844265,
                0.0017556258403835239793,   -0.0097465795335508494051,
                0.028362277421255808786,    -0.058693398591640382252,
                0.092304321160187945477,    -0.1088039301416638817,
                0.082276738490151810108,    0.0035854154854630097932,
                -0.14024059858554702742,    1.2375126308378275836});
  Value power = emitExpF64(code, code.mul(code.neg(z), z));
  Value tail =
      code.div(code.mul(series, code.mul(power, 0.5)), code.fma(z, 2.0, 1.0));
  return code.select(isNegative, tail, code.sub(code.like(x, 1.0), tail));
}

Value mlir::dyna::rows::emitNormalCdf(CodeBuilder &code, Value x) {
  if (isF64(x) && !code.getTraits().hasLibm)
    return emitNormalCdfF64(code, x);
  if (isF64(x))
    return code.mul(emitLibm(code, "erfc", code.mul(x, -M_SQRT1_2)), 0.5);
  return emitNormalCdfF32(code, x);
}

//===----------------------------------------------------------------------===//
// Sine and cosine
//===----------------------------------------------------------------------===//

std::pair<Value, Value> mlir::dyna::rows::emitSinCos(CodeBuilder &code,
                                                     Value angle, Type type) {
  // angle = n pi/2 + r with |r| <= pi/4. The constant leaves n in the low bits.
  constexpr double magic = 6755399441055744.0; // 1.5 * 2^52
  Value shifted = code.fma(angle, M_2_PI, magic);
  Value n = code.sub(shifted, magic);
  Value r = code.fma(n, code.like(angle, -M_PI_2), angle);
  r = code.fma(n, code.like(angle, -6.123233995736766e-17), r);
  Value quadrant = code.bitcast(shifted, code.i64Type());

  r = code.convertFloat(r, type);
  Value square = code.mul(r, r);
  // Taylor's series; the first omitted terms are below 2e-9 and 1e-19.
  SmallVector<double> sine, cosine;
  for (int64_t degree = type.isF64() ? 18 : 10; degree >= 0; degree -= 2) {
    double sign = degree % 4 == 0 ? 1.0 : -1.0;
    cosine.push_back(sign / std::tgamma(degree + 1.0));
    sine.push_back(sign / std::tgamma(degree + 2.0));
  }
  Value sinR = code.mul(polynomial(code, square, sine), r);
  Value cosR = polynomial(code, square, cosine);

  // sin(r + n pi/2) is sin, cos, -sin, -cos for n = 0, 1, 2, 3.
  Type i64s = quadrant.getType();
  Value zero = code.constant(i64s, int64_t(0));
  auto bitSet = [&](Value value, int64_t bit) {
    Value masked = code.bitAnd(value, code.constant(i64s, bit));
    return code.equal(masked, zero);
  };
  Value even = bitSet(quadrant, 1);
  Value sin = code.select(even, sinR, cosR);
  Value cos = code.select(even, cosR, sinR);
  sin = code.select(bitSet(quadrant, 2), sin, code.neg(sin));
  Value next = code.add(quadrant, code.constant(i64s, int64_t(1)));
  cos = code.select(bitSet(next, 2), cos, code.neg(cos));
  return {sin, cos};
}

//===----------------------------------------------------------------------===//
// Random numbers
//===----------------------------------------------------------------------===//

static Value xorShift(CodeBuilder &code, Value value, int64_t bits) {
  return code.bitXor(value, code.shiftRight(value, bits));
}

static Value times(CodeBuilder &code, Value value, uint64_t factor) {
  return code.mul(value,
                  code.constant(value.getType(), static_cast<int64_t>(factor)));
}

Value mlir::dyna::rows::emitMix64(CodeBuilder &code, Value z) {
  z = code.add(z, code.i64(static_cast<int64_t>(0x9E3779B97F4A7C15u)));
  z = times(code, xorShift(code, z, 30), 0xBF58476D1CE4E5B9u);
  z = times(code, xorShift(code, z, 27), 0x94D049BB133111EBu);
  return xorShift(code, z, 31);
}

Value mlir::dyna::rows::emitMix32(CodeBuilder &code, Value x) {
  x = times(code, xorShift(code, x, 16), 0x7FEB352Du);
  x = times(code, xorShift(code, x, 15), 0x846CA68Bu);
  return xorShift(code, x, 16);
}

Value mlir::dyna::rows::emitRandomOpKey(CodeBuilder &code, Value seed,
                                        Value step, Value layer,
                                        int64_t instance) {
  Value key = emitMix64(code, seed);
  key = emitMix64(code, code.bitXor(key, step));
  Value place = code.bitOr(code.shiftLeft(layer, 32), code.i64(instance));
  return emitMix64(code, code.bitXor(key, place));
}

Value mlir::dyna::rows::emitRandomRowKey(CodeBuilder &code, Value opKey,
                                         Value sample, Value position) {
  Value key = emitMix64(code, code.bitXor(opKey, sample));
  return emitMix64(code, code.bitXor(key, position));
}

Value mlir::dyna::rows::emitRandomElements(CodeBuilder &code, Value rowKey,
                                           Value first, int64_t width) {
  SmallVector<int32_t> lanes(width);
  for (int64_t lane = 0; lane < width; ++lane)
    lanes[lane] = lane;
  Value iota = arith::ConstantOp::create(
      code, DenseIntElementsAttr::get(VectorType::get(width, code.i32Type()),
                                      ArrayRef<int32_t>(lanes)));
  Value begin = code.truncate(first, code.i32Type());
  Value feature = code.add(code.splat(begin, width), iota);
  Value low = code.truncate(rowKey, code.i32Type());
  Value high = code.truncate(code.shiftRight(rowKey, 32), code.i32Type());
  Value x =
      code.bitXor(code.splat(low, width), times(code, feature, 0x9E3779B9u));
  x = code.bitXor(emitMix32(code, x), code.splat(high, width));
  return emitMix32(code, x);
}
