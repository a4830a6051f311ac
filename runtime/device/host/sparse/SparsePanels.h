//===- SparsePanels.h - Packs tokens into panels ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Activations are token-major, [tokens, features]. Kernels want the tokens of a feature
// side by side. A panel has up to 64 tokens: a line of `stride` elements of the type of
// sums for each feature, whole vectors. Lanes without a token are zero.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSEPANELS_H
#define DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSEPANELS_H

#include "runtime/device/host/RowKernels.h"
#include "runtime/device/host/Simd.h"

namespace dyna {
namespace DYNA_ISA {

typedef uint32_t WordVector __attribute__((vector_size(kVectorBytes)));
typedef uint16_t HalfVector __attribute__((vector_size(kVectorBytes / 2)));
typedef uint16_t HalfMemory
    __attribute__((vector_size(kVectorBytes / 2), aligned(2), may_alias));

DYNA_INLINE FloatVector loadWide(const float *p) { return load(p); }
DYNA_INLINE DoubleVector loadWide(const double *p) { return load(p); }
DYNA_INLINE FloatVector loadWide(const uint16_t *p) {
  HalfVector half = *reinterpret_cast<const HalfMemory *>(p);
  return reinterpret_cast<FloatVector>(__builtin_convertvector(half, WordVector)
                                       << 16);
}
DYNA_INLINE float widen(float value) { return value; }
DYNA_INLINE double widen(double value) { return value; }
DYNA_INLINE float widen(uint16_t value) {
  return __builtin_bit_cast(float, static_cast<uint32_t>(value) << 16);
}

DYNA_INLINE void storeNarrow(float *p, FloatVector v) { store(p, v); }
DYNA_INLINE void storeNarrow(double *p, DoubleVector v) { store(p, v); }
DYNA_INLINE void storeNarrow(uint16_t *p, FloatVector v) {
  WordVector bits = reinterpret_cast<WordVector>(v);
  WordVector rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
  WordVector quiet = (bits >> 16) | 0x40;
  WordVector result = (bits & 0x7fffffff) > 0x7f800000 ? quiet : rounded;
  *reinterpret_cast<HalfMemory *>(p) =
      __builtin_convertvector(result, HalfVector);
}
DYNA_INLINE void storeNarrow(float *p, float v) { *p = v; }
DYNA_INLINE void storeNarrow(double *p, double v) { *p = v; }
DYNA_INLINE void storeNarrow(uint16_t *p, float v) { *p = narrowElement(v); }

/// panel[f][t] = x[t][f] for up to `stride` tokens and `features` features.
template <typename Storage, typename Sum>
void pack(const Storage *x, int64_t ldx, int64_t tokens, int64_t features,
          Sum *panel, int64_t stride) {
  constexpr int w = kLanes<Sum>;
  const int64_t squareTokens = tokens / w * w;
  const int64_t squareFeatures = features / w * w;
  for (int64_t f = 0; f < squareFeatures; f += w)
    for (int64_t t = 0; t < squareTokens; t += w) {
      Vec<Sum> square[w];
      DYNA_UNROLL
      for (int i = 0; i < w; ++i)
        square[i] = loadWide(x + (t + i) * ldx + f);
      transposeSquare<Sum>(square);
      DYNA_UNROLL
      for (int i = 0; i < w; ++i)
        store(panel + (f + i) * stride + t, square[i]);
    }
  for (int64_t f = squareFeatures; f < features; ++f)
    for (int64_t t = 0; t < squareTokens; ++t)
      panel[f * stride + t] = widen(x[t * ldx + f]);
  if (squareTokens == stride)
    return;
  for (int64_t f = 0; f < features; ++f) {
    for (int64_t t = squareTokens; t < tokens; ++t)
      panel[f * stride + t] = widen(x[t * ldx + f]);
    for (int64_t t = tokens; t < stride; ++t)
      panel[f * stride + t] = 0;
  }
}

/// y[t][f] = panel[f][t], or y += that; touches nothing else.
template <bool Add, typename Storage, typename Sum>
void unpack(const Sum *panel, int64_t stride, int64_t tokens, int64_t features,
            Storage *y, int64_t ldy) {
  constexpr int w = kLanes<Sum>;
  const int64_t squareTokens = tokens / w * w;
  const int64_t squareFeatures = features / w * w;
  for (int64_t f = 0; f < squareFeatures; f += w)
    for (int64_t t = 0; t < squareTokens; t += w) {
      Vec<Sum> square[w];
      DYNA_UNROLL
      for (int i = 0; i < w; ++i)
        square[i] = load(panel + (f + i) * stride + t);
      transposeSquare<Sum>(square);
      DYNA_UNROLL
      for (int i = 0; i < w; ++i) {
        Storage *to = y + (t + i) * ldy + f;
        storeNarrow(to, Add ? loadWide(to) + square[i] : square[i]);
      }
    }
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t f = t < squareTokens ? squareFeatures : 0; f < features; ++f) {
      Sum sum = panel[f * stride + t];
      storeNarrow(y + t * ldy + f, Add ? widen(y[t * ldy + f]) + sum : sum);
    }
}

} // namespace DYNA_ISA
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSEPANELS_H
