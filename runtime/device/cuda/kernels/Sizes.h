//===- Sizes.h - Limits rows that kernels can count -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_SIZES_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_SIZES_H

#include <cstdint>

namespace dyna {
namespace gpu {

/// Rows of the largest tile.
constexpr int kMaxTile = 128;

/// Largest number of rows or columns. Kernels count them in 32 bits, from any
/// of them to the end of a tile that begins there. That end may lie after the
/// last one.
constexpr int32_t kMaxSize = INT32_MAX - (kMaxTile - 1);

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_SIZES_H
