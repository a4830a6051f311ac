//===- RowKernels.h - Converts rows and computes losses ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_ROWKERNELS_H
#define DYNA_RUNTIME_DEVICE_HOST_ROWKERNELS_H

#include "runtime/device/host/KernelTable.h"
#include "runtime/device/host/Simd.h"

namespace dyna {
namespace DYNA_ISA {

/// Compute types: how elements are stored and in what they are added up.
struct F32 {
  using Storage = float;
  using Sum = float;
};
struct F64 {
  using Storage = double;
  using Sum = double;
};
struct Bf16 {
  using Storage = uint16_t;
  using Sum = float;
};

typedef uint32_t FloatBits __attribute__((may_alias));

/// Rounds to nearest, ties to even; NaN stays NaN.
DYNA_INLINE uint16_t narrowBits(uint32_t bits) {
  uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  uint32_t quiet = (bits >> 16) | 0x40;
  return static_cast<uint16_t>((bits & 0x7fffffff) > 0x7f800000 ? quiet
                                                                : rounded);
}
DYNA_INLINE uint16_t narrowElement(float value) {
  return narrowBits(__builtin_bit_cast(uint32_t, value));
}

DYNA_INLINE void convertRow(const float *source, float *target, int64_t n) {
  __builtin_memcpy(target, source, static_cast<size_t>(n) * sizeof(float));
}
DYNA_INLINE void convertRow(const double *source, double *target, int64_t n) {
  __builtin_memcpy(target, source, static_cast<size_t>(n) * sizeof(double));
}
DYNA_INLINE void convertRow(const uint16_t *source, float *target, int64_t n) {
  FloatBits *bits = reinterpret_cast<FloatBits *>(target);
  for (int64_t i = 0; i < n; ++i)
    bits[i] = static_cast<uint32_t>(source[i]) << 16;
}
DYNA_INLINE void convertRow(const float *source, uint16_t *target, int64_t n) {
  const FloatBits *bits = reinterpret_cast<const FloatBits *>(source);
  for (int64_t i = 0; i < n; ++i)
    target[i] = narrowBits(bits[i]);
}

template <typename From, typename To> void convertBlock(const CopyBlock &copy) {
  for (int64_t row = 0; row < copy.rows; ++row)
    convertRow(static_cast<const From *>(copy.source) + row * copy.sourceStride,
               static_cast<To *>(copy.target) + row * copy.targetStride,
               copy.columns);
}

inline void addNarrowBlock(const CopyBlock &copy) {
  for (int64_t row = 0; row < copy.rows; ++row) {
    const float *source =
        static_cast<const float *>(copy.source) + row * copy.sourceStride;
    uint16_t *target =
        static_cast<uint16_t *>(copy.target) + row * copy.targetStride;
    for (int64_t i = 0; i < copy.columns; ++i) {
      uint32_t wide = static_cast<uint32_t>(target[i]) << 16;
      target[i] = narrowElement(source[i] + __builtin_bit_cast(float, wide));
    }
  }
}

template <bool isFirst, bool isLast>
inline void addSplitElements(const SplitSum &sum) {
  for (int64_t i = 0; i < sum.elements; ++i) {
    uint32_t bits = static_cast<uint32_t>(sum.upper[i]) << 16;
    if (!isFirst)
      bits |= sum.lower[i];
    float value = sum.source[i] + __builtin_bit_cast(float, bits);
    if (isLast) {
      sum.upper[i] = narrowElement(value);
      continue;
    }
    bits = __builtin_bit_cast(uint32_t, value);
    sum.upper[i] = static_cast<uint16_t>(bits >> 16);
    sum.lower[i] = static_cast<uint16_t>(bits);
  }
}

inline void addSplitSum(const SplitSum &sum) {
  if (sum.isFirst)
    return sum.isLast ? addSplitElements<true, true>(sum)
                      : addSplitElements<true, false>(sum);
  return sum.isLast ? addSplitElements<false, true>(sum)
                    : addSplitElements<false, false>(sum);
}

/// Returns the largest element of a row.
template <typename T> T largestElement(const T *row, int64_t n) {
  constexpr int w = kLanes<T>;
  constexpr int chains = 4;
  T most = row[0];
  int64_t i = 0;
  if (n >= chains * w) {
    Vec<T> vectors[chains];
    for (int c = 0; c < chains; ++c)
      vectors[c] = load(row + c * w);
    for (i = chains * w; i + chains * w <= n; i += chains * w)
      DYNA_UNROLL
    for (int c = 0; c < chains; ++c)
      vectors[c] = larger<T>(load(row + i + c * w), vectors[c]);
    Vec<T> all = larger<T>(larger<T>(vectors[0], vectors[1]),
                           larger<T>(vectors[2], vectors[3]));
    most = largestLane<T>(all);
  }
  for (; i < n; ++i)
    most = row[i] > most ? row[i] : most;
  return most;
}

constexpr double kLog2E = 1.4426950408889634074;
constexpr double kLn2 = 0.69314718055994530942;

/// Replaces the row by 2^((x - most) * log2 e) and returns the sum. Sums in f64
/// from pieces short enough for T.
template <typename T> double exponentials(T *row, int64_t n, T most) {
  constexpr int w = kLanes<T>;
  constexpr int64_t piece = 1024;
  const T log2e = static_cast<T>(kLog2E);
  double sum = 0;
  int64_t i = 0;
  while (i + w <= n) {
    Vec<T> partial{};
    for (int64_t end = i + piece; i + w <= n && i < end; i += w) {
      Vec<T> e = powerOfTwo((load(row + i) - most) * log2e);
      store(row + i, e);
      partial += e;
    }
    sum += static_cast<double>(sumLanes<T>(partial));
  }
  if (i < n) {
    T rest[w];
    for (int j = 0; j < w; ++j)
      rest[j] = i + j < n ? row[i + j] : most;
    Vec<T> e = powerOfTwo((load(rest) - most) * log2e);
    for (int64_t j = 0; i + j < n; ++j) {
      row[i + j] = e[j];
      sum += static_cast<double>(e[j]);
    }
  }
  return sum;
}

template <typename E> double largestLogit(const LossRow &p) {
  using T = typename E::Sum;
  if (p.vocab == 0)
    return -HUGE_VAL;
  return static_cast<double>(
      largestElement(static_cast<const T *>(p.logits), p.vocab));
}

template <typename E> LossTerms lossTerms(const LossRow &p, double most) {
  using T = typename E::Sum;
  T *row = static_cast<T *>(p.logits);
  double target = p.hasTarget() ? static_cast<double>(row[p.target]) : 0;
  return {exponentials(row, p.vocab, static_cast<T>(most)), target};
}

template <typename E> void lossGradient(const LossRow &p, double sum) {
  using T = typename E::Sum;
  T *row = static_cast<T *>(p.logits);
  auto *gradient = static_cast<typename E::Storage *>(p.gradient);
  T factor = static_cast<T>(p.gradientScale / sum);
  T scale = static_cast<T>(p.gradientScale);
  T atTarget = p.hasTarget() ? row[p.target] * factor - scale : T(0);
  for (int64_t i = 0; i < p.vocab; ++i)
    row[i] *= factor;
  if (p.hasTarget())
    row[p.target] = atTarget;
  if (static_cast<void *>(gradient) != static_cast<void *>(row))
    convertRow(row, gradient, p.vocab);
}

template <typename E> double lossRow(const LossRow &p) {
  double most = largestLogit<E>(p);
  LossTerms terms = lossTerms<E>(p, most);
  if (p.gradient)
    lossGradient<E>(p, terms.sum);
  return log(terms.sum) + (most - terms.target);
}

} // namespace DYNA_ISA
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_ROWKERNELS_H
