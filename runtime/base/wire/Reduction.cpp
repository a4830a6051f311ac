//===- Reduction.cpp - Computes sums and maxima over ranks ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/wire/Reduction.h"

#include <cstring>

int64_t dyna::elementBytes(int32_t element) {
  switch (element) {
  case DYNA_ELEMENT_F64:
    return 8;
  case DYNA_ELEMENT_F32:
  case DYNA_ELEMENT_I32:
    return 4;
  case DYNA_ELEMENT_BF16:
    return 2;
  default:
    return 0;
  }
}

// Inline it into the copies for each instruction set below.
#define DYNA_INLINE inline __attribute__((always_inline))

namespace {

/// Element type in memory, and the type in which elements are added.
template <typename T> struct Plain {
  using Storage = T;
  using Sum = T;
  DYNA_INLINE static T widen(T value) { return value; }
  DYNA_INLINE static T narrow(T value) { return value; }
};

struct Bf16 {
  using Storage = uint16_t;
  using Sum = float;
  DYNA_INLINE static float widen(uint16_t value) {
    uint32_t bits = static_cast<uint32_t>(value) << 16;
    float result;
    memcpy(&result, &bits, sizeof(result));
    return result;
  }
  DYNA_INLINE static uint16_t narrow(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    // Rounding could carry a NaN into an infinity, so make it quiet instead.
    uint32_t quiet = (bits >> 16) | 0x40;
    uint32_t rounded = (bits + 0x7fff + ((bits >> 16) & 1)) >> 16;
    return static_cast<uint16_t>(value != value ? quiet : rounded);
  }
};

DYNA_INLINE double add(double a, double b) { return a + b; }
DYNA_INLINE float add(float a, float b) { return a + b; }
/// Wraps around.
DYNA_INLINE int32_t add(int32_t a, int32_t b) {
  return static_cast<int32_t>(static_cast<uint32_t>(a) +
                              static_cast<uint32_t>(b));
}

struct Add {
  template <typename T> DYNA_INLINE static T apply(T a, T b) {
    return add(a, b);
  }
};
struct Maximum {
  template <typename T> DYNA_INLINE static T apply(T a, T b) {
    return b > a || b != b ? b : a;
  }
};

/// Elements whose sums stay in registers while all sources are read once.
constexpr int64_t kStep = 64;

template <typename Element, typename Operator>
DYNA_INLINE void reduceStep(const void *const *sources, int sourceCount,
                            void *const *targets, int targetCount,
                            int64_t begin, int64_t count) {
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
DYNA_INLINE void reduceAll(const void *const *sources, int sourceCount,
                           void *const *targets, int targetCount,
                           int64_t count) {
  int64_t i = 0;
  for (; i + kStep <= count; i += kStep)
    reduceStep<Element, Operator>(sources, sourceCount, targets, targetCount, i,
                                  kStep);
  if (i < count)
    reduceStep<Element, Operator>(sources, sourceCount, targets, targetCount, i,
                                  count - i);
}

struct Arguments {
  int32_t element, reduction;
  const void *const *sources;
  int sourceCount;
  void *const *targets;
  int targetCount;
  int64_t count;
};

template <typename Element> DYNA_INLINE void reduceBy(const Arguments &a) {
  if (a.reduction == DYNA_REDUCE_MAX)
    reduceAll<Element, Maximum>(a.sources, a.sourceCount, a.targets,
                                a.targetCount, a.count);
  else
    reduceAll<Element, Add>(a.sources, a.sourceCount, a.targets, a.targetCount,
                            a.count);
}

DYNA_INLINE void reduceAny(const Arguments &a) {
  switch (a.element) {
  case DYNA_ELEMENT_F64:
    return reduceBy<Plain<double>>(a);
  case DYNA_ELEMENT_F32:
    return reduceBy<Plain<float>>(a);
  case DYNA_ELEMENT_BF16:
    return reduceBy<Bf16>(a);
  case DYNA_ELEMENT_I32:
    return reduceBy<Plain<int32_t>>(a);
  default: // `checkCollective` has refused others
    return;
  }
}

//===----------------------------------------------------------------------===//
// One copy per instruction set. All give the same bits, because they only add,
// which rounds alike in every set.
//===----------------------------------------------------------------------===//

void reduceBaseline(const Arguments &a) { reduceAny(a); }

#if defined(__x86_64__)
__attribute__((target("avx2"))) void reduceAvx2(const Arguments &a) {
  reduceAny(a);
}
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl"))) void
reduceAvx512(const Arguments &a) {
  reduceAny(a);
}
#endif

using Function = void (*)(const Arguments &);

Function bestFunction() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    return reduceAvx512;
  if (__builtin_cpu_supports("avx2"))
    return reduceAvx2;
#endif
  return reduceBaseline;
}

} // namespace

void dyna::reduceElements(int32_t element, int32_t reduction,
                          const void *const *sources, int sourceCount,
                          void *const *targets, int targetCount,
                          int64_t count) {
  static const Function function = bestFunction();
  function(
      {element, reduction, sources, sourceCount, targets, targetCount, count});
}
