//===- Reduction.cpp - Sums and maxima over ranks ---------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "runtime/transport/Reduction.h"

#include <cstring>

namespace {

/// How elements lie in memory, and the type they are added in.
template <typename T> struct Plain {
  using Storage = T;
  using Sum = T;
  static T widen(T value) { return value; }
  static T narrow(T value) { return value; }
};

struct Bf16 {
  using Storage = uint16_t;
  using Sum = float;
  static float widen(uint16_t value) {
    uint32_t bits = static_cast<uint32_t>(value) << 16;
    float result;
    memcpy(&result, &bits, sizeof(result));
    return result;
  }
  static uint16_t narrow(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    // Adding could carry a not-a-number into an infinity.
    uint32_t quiet = (bits >> 16) | 0x40;
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return static_cast<uint16_t>(value != value ? quiet : rounded);
  }
};

inline double add(double a, double b) { return a + b; }
inline float add(float a, float b) { return a + b; }
/// Wraps around.
inline int32_t add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) +
                              static_cast<uint32_t>(b));
}

struct AddTo {
  template <typename T> static T apply(T a, T b) { return add(a, b); }
};
struct Maximum {
  template <typename T> static T apply(T a, T b) {
    return b > a || b != b ? b : a;
  }
};

/// Elements whose sums stay in registers while all sources are read once.
constexpr int64_t kStep = 64;

template <typename Element, typename Operator>
inline void reduceStep(const void *const *sources, int sourceCount,
                       void *const *targets, int targetCount, int64_t begin,
                       int64_t count) {
  using Storage = typename Element::Storage;
  typename Element::Sum sums[kStep];
  const Storage *first = static_cast<const Storage *>(sources[0]) + begin;
  for (int64_t i = 0; i < count; ++i)
    sums[i] = Element::widen(first[i]);
  for (int s = 1; s < sourceCount; ++s) {
    const Storage *source = static_cast<const Storage *>(sources[s]) + begin;
    for (int64_t i = 0; i < count; ++i)
      sums[i] = Operator::apply(sums[i], Element::widen(source[i]));
  }
  Storage results[kStep];
  for (int64_t i = 0; i < count; ++i)
    results[i] = Element::narrow(sums[i]);
  for (int t = 0; t < targetCount; ++t)
    memcpy(static_cast<Storage *>(targets[t]) + begin, results,
           static_cast<size_t>(count) * sizeof(Storage));
}

template <typename Element, typename Operator>
void reduceAll(const void *const *sources, int sourceCount,
               void *const *targets, int targetCount, int64_t count) {
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep)
    reduceStep<Element, Operator>(sources, sourceCount, targets, targetCount, i,
                                  kStep);
  if (i < count)
    reduceStep<Element, Operator>(sources, sourceCount, targets, targetCount, i,
                                  count - i);
}

template <typename Element>
void reduceBy(int32_t reduction, const void *const *sources, int sourceCount,
              void *const *targets, int targetCount, int64_t count) {
  auto *function = reduction == DYNA_REDUCE_MAX ? reduceAll<Element, Maximum>
                                                : reduceAll<Element, AddTo>;
  function(sources, sourceCount, targets, targetCount, count);
}

} // namespace

void dyna::reduceElements(int32_t element, int32_t reduction,
                          const void *const *sources, int sourceCount,
                          void *const *targets, int targetCount,
                          int64_t count) {
  auto *function = element == DYNA_ELEMENT_F64    ? reduceBy<Plain<double>>
                   : element == DYNA_ELEMENT_BF16 ? reduceBy<Bf16>
                   : element == DYNA_ELEMENT_I32  ? reduceBy<Plain<int32_t>>
                                                  : reduceBy<Plain<float>>;
  function(reduction, sources, sourceCount, targets, targetCount, count);
}
