//===- Kernels.cpp - Compiles kernels of one instruction set ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Compiled once per instruction set (see CMakeLists.txt), each time with its
// own flags and DYNA_ISA.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/host/AttentionGradKernels.h"

#include <time.h>
#if defined(__AVX512F__)
#include <immintrin.h>
#endif

namespace dyna {
namespace DYNA_ISA {

#if defined(__AVX512F__)
static double secondsNow() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<double>(now.tv_sec) +
         1e-9 * static_cast<double>(now.tv_nsec);
}

// Twelve independent sums keep two units of latency 6 busy.
#define DYNA_TWELVE(instruction)                                               \
  instruction(0) instruction(1) instruction(2) instruction(3) instruction(4)   \
      instruction(5) instruction(6) instruction(7) instruction(8)              \
          instruction(9) instruction(10) instruction(11)
#define DYNA_FMA_F32(i)                                                        \
  __asm__ volatile("vfmadd231ps %1, %1, %0" : "+v"(sums[i]) : "v"(factor));
#define DYNA_FMA_BF16(i)                                                       \
  __asm__ volatile("vdpbf16ps %1, %1, %0" : "+v"(sums[i]) : "v"(factor));

static double secondsOfF32(int64_t repeats) {
  __m512 sums[12] = {}, factor = _mm512_setzero_ps();
  double start = secondsNow();
  for (int64_t i = 0; i < repeats; ++i) {
    DYNA_TWELVE(DYNA_FMA_F32)
  }
  return secondsNow() - start;
}

static double secondsOfBf16(int64_t repeats) {
  if (!__builtin_cpu_supports("avx512bf16"))
    return 0;
  __m512 sums[12] = {}, factor = _mm512_setzero_ps();
  double start = secondsNow();
  for (int64_t i = 0; i < repeats; ++i) {
    DYNA_TWELVE(DYNA_FMA_BF16)
  }
  return secondsNow() - start;
}
#else
static double secondsOfF32(int64_t) { return 0; }
static double secondsOfBf16(int64_t) { return 0; }
#endif

template <typename E> constexpr TypedKernels typedKernels() noexcept {
  using Storage = typename E::Storage;
  using Sum = typename E::Sum;
  return {attentionScratch<E>,
          attentionGradScratch<E>,
          attention<E>,
          attentionGrad<E>,
          lossRow<E>,
          largestLogit<E>,
          lossTerms<E>,
          lossGradient<E>,
          convertBlock<Sum, Storage>,
          convertBlock<Storage, Sum>};
}

#define DYNA_TEXT_OF(name) #name
#define DYNA_TEXT(name) DYNA_TEXT_OF(name)

extern const SparseTable sparseTable;
extern const KernelTable table;
const KernelTable table = {
    DYNA_TEXT(DYNA_ISA),  typedKernels<F32>(), typedKernels<F64>(),
    typedKernels<Bf16>(), addNarrowBlock,      addSplitSum,
    secondsOfF32,         secondsOfBf16,       &sparseTable};

} // namespace DYNA_ISA

const KernelTable &DYNA_ISA_TABLE() { return DYNA_ISA::table; }

} // namespace dyna
