//===- ProductEpilogue.cu - Computes epilogues ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Bias, gelu and its gradient over a product that lies in C already, where its
// library does not do them.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/Elements.h"

namespace dyna {
namespace gpu {
namespace product_epilogue {

DYNA_GPU float load(const float *from) { return *from; }
DYNA_GPU double load(const double *from) { return *from; }
DYNA_GPU float load(const uint16_t *from) { return widenBf16(*from); }
DYNA_GPU void store(float value, float *to) { *to = value; }
DYNA_GPU void store(double value, double *to) { *to = value; }
DYNA_GPU void store(float value, uint16_t *to) {
  *to = static_cast<uint16_t>(packBf16(value, value));
}

/// Returns 1 / (1 + e^(-2 u)), where u is the argument of the tanh of gelu(x).
/// gelu(x) is x times this.
template <typename Sum> DYNA_GPU Sum gate(Sum x) {
  // 2 sqrt(2 / pi) log2(e)
  constexpr double kFactor = 2.302208198144325;
  const Sum u = x * (Sum(1) + Sum(0.044715) * x * x);
  return Sum(1) / (Sum(1) + exp2(Sum(-kFactor) * u));
}

template <typename Sum> DYNA_GPU Sum gelu(Sum x) { return x * gate(x); }

template <typename Sum> DYNA_GPU Sum geluGradient(Sum x) {
  constexpr double kFactor = 1.5957691216057308; // 2 sqrt(2 / pi)
  const Sum g = gate(x);
  const Sum slope = Sum(kFactor) * (Sum(1) + Sum(3 * 0.044715) * x * x);
  // Far from 0 the slope overflows before the gate is exactly 0 or 1.
  const Sum bend = g * (Sum(1) - g);
  return bend == Sum(0) ? g : g + x * slope * bend;
}

template <typename Sum, typename T, int size>
DYNA_GPU void run(const ProductEpilogueArguments &args) {
  using P = Piece<T, size>;
  const int64_t across = args.n / size;
  const int64_t index = int64_t(blockIndex()) * blockSize() + threadIndex();
  // A 64-bit division takes longer than all the rest, so avoid it if 32 bits
  // suffice.
  const int64_t row = (index | across) >> 32 == 0
                          ? uint32_t(index) / uint32_t(across)
                          : index / across;
  const int64_t column = (index - row * across) * size;
  if (row >= args.m)
    return;
  P *at =
      reinterpret_cast<P *>(static_cast<T *>(args.c) + row * args.ldc + column);
  P *auxAt = args.aux ? reinterpret_cast<P *>(static_cast<T *>(args.aux) +
                                              row * args.auxStride + column)
                      : nullptr;
  P c = *aligned<int(sizeof(P))>(at);
  if (args.isGradient) {
    const P x = *aligned<int(sizeof(P))>(auxAt);
#pragma unroll
    for (int i = 0; i < size; ++i)
      store(load(&c.values[i]) * geluGradient<Sum>(load(&x.values[i])),
            &c.values[i]);
    *at = c;
    return;
  }
  const P bias = *aligned<int(sizeof(P))>(
      reinterpret_cast<const P *>(static_cast<const T *>(args.bias) + column));
  P before;
#pragma unroll
  for (int i = 0; i < size; ++i) {
    const Sum sum = load(&c.values[i]) + load(&bias.values[i]);
    store(sum, &before.values[i]);
    store(args.isGelu ? gelu<Sum>(sum) : sum, &c.values[i]);
  }
  *at = c;
  if (args.isGelu && auxAt)
    *auxAt = before;
}

template <typename Sum, typename T>
DYNA_GPU void runAll(const ProductEpilogueArguments &args) {
  if (args.isAligned)
    run<Sum, T, kProductEpilogueBytes / int(sizeof(T))>(args);
  else
    run<Sum, T, 1>(args);
}

} // namespace product_epilogue
} // namespace gpu
} // namespace dyna

using namespace dyna;

DYNA_KERNEL(product_epilogue_f32) {
  gpu::product_epilogue::runAll<float, float>(args);
}
DYNA_KERNEL(product_epilogue_f64) {
  gpu::product_epilogue::runAll<double, double>(args);
}
DYNA_KERNEL(product_epilogue_bf16) {
  gpu::product_epilogue::runAll<float, uint16_t>(args);
}
