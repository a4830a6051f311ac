//===- Elements.h - Compares and groups elements ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ELEMENTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ELEMENTS_H

#include "runtime/device/cuda/kernels/Gpu.h"

namespace dyna {
namespace gpu {

/// Elements that are read or written at once: 16 bytes, or fewer.
template <typename T, int count = 16 / int(sizeof(T))>
struct alignas(count * sizeof(T)) Piece {
  static constexpr int size = count;
  T values[count];
};

/// Return the smaller or larger value. The result is undefined for NaN; floats
/// have largestOf.
template <typename T> DYNA_GPU T least(T a, T b) { return a < b ? a : b; }
template <typename T> DYNA_GPU T most(T a, T b) { return a < b ? b : a; }

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ELEMENTS_H
