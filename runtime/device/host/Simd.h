//===- Simd.h - Declares vectors of the instruction set ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Included only by Kernels.cpp and sparse/SparseKernels.cpp, which are compiled once per
// instruction set with DYNA_ISA naming the namespace. Nothing here may be shared between
// those copies: a function with one name and three meanings would be linked once.
// That is also why no standard container or algorithm appears in the kernels.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_SIMD_H
#define DYNA_RUNTIME_DEVICE_HOST_SIMD_H

#include <math.h>
#include <stdint.h>
#include <utility>

#if defined(__clang__)
#define DYNA_UNROLL _Pragma("clang loop unroll(full)")
#else
#define DYNA_UNROLL _Pragma("GCC unroll 16")
#endif
#define DYNA_INLINE inline __attribute__((always_inline))

namespace dyna {
namespace DYNA_ISA {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
constexpr int kRegisters = 32;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
constexpr int kRegisters = 16;
#else
constexpr int kVectorBytes = 16;
constexpr int kRegisters = 16;
#endif

typedef float FloatVector __attribute__((vector_size(kVectorBytes)));
typedef float FloatMemory
    __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
typedef int32_t IntVector __attribute__((vector_size(kVectorBytes)));
typedef double DoubleVector __attribute__((vector_size(kVectorBytes)));
typedef double DoubleMemory
    __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));

/// Vectors of T: `V` in registers, `M` at any address.
template <typename T> struct Simd;
template <> struct Simd<float> {
  using V = FloatVector;
  using M = FloatMemory;
};
template <> struct Simd<double> {
  using V = DoubleVector;
  using M = DoubleMemory;
};

template <typename T> using Vec = typename Simd<T>::V;
template <typename T> constexpr int kLanes = kVectorBytes / int(sizeof(T));

template <typename T> DYNA_INLINE Vec<T> load(const T *p) {
  return *reinterpret_cast<const typename Simd<T>::M *>(p);
}
template <typename T> DYNA_INLINE void store(T *p, Vec<T> v) {
  *reinterpret_cast<typename Simd<T>::M *>(p) = v;
}
template <typename T> DYNA_INLINE Vec<T> splat(T value) {
  return value - Vec<T>{}; // x - 0 is x, and folds away; 0 + x does not (-0)
}
/// Returns the larger value of each lane; the second if one is NaN.
template <typename T> DYNA_INLINE Vec<T> larger(Vec<T> a, Vec<T> b) {
  return a > b ? a : b;
}
template <typename T> DYNA_INLINE T sumLanes(Vec<T> v) {
  T sum = 0;
  for (int i = 0; i < kLanes<T>; ++i)
    sum += v[i];
  return sum;
}
template <typename T> DYNA_INLINE T largestLane(Vec<T> v) {
  T most = v[0];
  for (int i = 1; i < kLanes<T>; ++i)
    most = v[i] > most ? v[i] : most;
  return most;
}

//===----------------------------------------------------------------------===//
// Powers and logarithms of two
//===----------------------------------------------------------------------===//

/// Returns 2^x in f32, with a relative error below 1e-7; 0 below 2^-126; NaN
/// stays NaN. All callers have `x` <= 0.
DYNA_INLINE FloatVector powerOfTwo(FloatVector x) {
  const FloatVector least = splat(-126.0f);
  // Adding 1.5 * 2^23 leaves the nearest integer in the low bits of the
  // mantissa.
  const FloatVector magic = splat(12582912.0f);
  FloatVector clamped = x < least ? least : x;
  FloatVector shifted = clamped + magic;
  FloatVector r = clamped - (shifted - magic); // in [-0.5, 0.5]
  // Interpolation of (2^r - 1) / r at Chebyshev nodes, error 5e-9.
  FloatVector poly = splat(1.545316294e-4f);
  poly = poly * r + 1.339086336e-3f;
  poly = poly * r + 9.618082557e-3f;
  poly = poly * r + 5.550357114e-2f;
  poly = poly * r + 2.402265076e-1f;
  poly = poly * r + 6.931471880e-1f;
  poly = poly * r + 1.0f;
  IntVector exponent = reinterpret_cast<IntVector>(shifted) << 23;
  IntVector bits = reinterpret_cast<IntVector>(poly) + exponent;
  FloatVector result = reinterpret_cast<FloatVector>(bits);
  return x < least ? FloatVector{} : result;
}

/// Returns log2 of a normal positive f32.
DYNA_INLINE FloatVector logOfTwo(FloatVector x) {
  IntVector bits = reinterpret_cast<IntVector>(x);
  // Splits x = 2^e * m with m in [sqrt(1/2), sqrt(2)); 0x3f3504f3 is sqrt(1/2).
  IntVector e = (bits - 0x3f3504f3) >> 23;
  IntVector mBits = bits - (e << 23);
  FloatVector m = reinterpret_cast<FloatVector>(mBits);
  // log(m) = 2 artanh(s) = 2 (s + s^3/3 + s^5/5 + ...), |s| < 0.172.
  FloatVector s = (m - 1.0f) / (m + 1.0f);
  FloatVector s2 = s * s;
  FloatVector sum = splat(1.0f / 9);
  sum = sum * s2 + 1.0f / 7;
  sum = sum * s2 + 1.0f / 5;
  sum = sum * s2 + 1.0f / 3;
  sum = sum * s2 + 1.0f;
  const float twoOverLn2 = 2.88539008f;
  return __builtin_convertvector(e, FloatVector) + sum * s * twoOverLn2;
}

DYNA_INLINE DoubleVector powerOfTwo(DoubleVector x) {
  for (int i = 0; i < kLanes<double>; ++i)
    x[i] = exp2(x[i]);
  return x;
}
DYNA_INLINE DoubleVector logOfTwo(DoubleVector x) {
  for (int i = 0; i < kLanes<double>; ++i)
    x[i] = log2(x[i]);
  return x;
}

//===----------------------------------------------------------------------===//
// Transposition
//===----------------------------------------------------------------------===//

/// Elements of the lower (0) or upper (1) halves of a and b, taking turns.
template <typename T, int Half, int... I>
DYNA_INLINE Vec<T> interleave(Vec<T> a, Vec<T> b,
                              std::integer_sequence<int, I...>) {
  constexpr int w = kLanes<T>;
  return __builtin_shufflevector(a, b, (Half * (w / 2) + I / 2 + I % 2 * w)...);
}

/// Transposes a square of vectors: log2(lanes) perfect shuffles, each of which
/// rotates the bits of (row, column) by one.
template <typename T>
DYNA_INLINE void transposeSquare(Vec<T> (&rows)[kLanes<T>]) {
  constexpr int w = kLanes<T>;
  using Sequence = std::make_integer_sequence<int, w>;
  DYNA_UNROLL
  for (int round = 1; round < w; round *= 2) {
    Vec<T> next[w];
    DYNA_UNROLL
    for (int i = 0; i < w / 2; ++i) {
      next[2 * i] = interleave<T, 0>(rows[i], rows[i + w / 2], Sequence());
      next[2 * i + 1] = interleave<T, 1>(rows[i], rows[i + w / 2], Sequence());
    }
    DYNA_UNROLL
    for (int i = 0; i < w; ++i)
      rows[i] = next[i];
  }
}

/// target[c][r] = source[r][c] * factor for r < rows, c < columns; touches
/// nothing else.
template <typename T>
void transpose(const T *source, int64_t sourceStride, int64_t rows,
               int64_t columns, T *target, int64_t targetStride, T factor) {
  constexpr int w = kLanes<T>;
  for (int64_t r = 0; r < rows; r += w)
    for (int64_t c = 0; c < columns; c += w) {
      if (r + w > rows || c + w > columns) {
        for (int64_t j = c; j < columns && j < c + w; ++j)
          for (int64_t i = r; i < rows && i < r + w; ++i)
            target[j * targetStride + i] =
                source[i * sourceStride + j] * factor;
        continue;
      }
      Vec<T> square[w];
      DYNA_UNROLL
      for (int i = 0; i < w; ++i)
        square[i] = load(source + (r + i) * sourceStride + c) * factor;
      transposeSquare<T>(square);
      DYNA_UNROLL
      for (int i = 0; i < w; ++i)
        store(target + (c + i) * targetStride + r, square[i]);
    }
}

} // namespace DYNA_ISA
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_SIMD_H
