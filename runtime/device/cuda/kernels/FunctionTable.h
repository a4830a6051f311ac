//===- FunctionTable.h - Declares the kernels -----------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the table of kernels. A program is linked with one of two archives
// that define it. The table of this folder has code for GPUs, and the table of
// test/standins has code for the processor.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_FUNCTIONTABLE_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_FUNCTIONTABLE_H

#include "runtime/abi/DeviceCode.h"
#include "runtime/device/cuda/kernels/KernelTypes.h"

/// Kernel number k is gpu::Kernel(k).
extern "C" const dyna_device_code dyna_cuda_kernels;

namespace dyna {
namespace gpu {

inline constexpr int64_t kKernelCount = static_cast<int64_t>(Kernel::Count);

inline constexpr dyna_device_function kKernelFunctions[] = {
#define DYNA_CUDA_KERNEL(name, Arguments, Shared, threads)                     \
  {#name, sizeof(Arguments), threads, KernelRow<Kernel::name>::sharedBytes},
#include "runtime/device/cuda/kernels/Kernels.def"
};

/// Shared memory that a block can have on every GPU from compute capability 8.0
/// on.
inline constexpr int kSharedOfAll = 99 << 10;
#define DYNA_CUDA_KERNEL(name, Arguments, Shared, threads)                     \
  static_assert(KernelRow<Kernel::name>::sharedBytes <= kSharedOfAll, #name);
#include "runtime/device/cuda/kernels/Kernels.def"

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_FUNCTIONTABLE_H
