//===- KernelTypes.h - Numbers the hand-written kernels ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels.def, as types: what launches a kernel and what compiles it agree on its
// arguments, its shared memory and its threads because both ask here. For the
// host's code and for kernels alike.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_KERNELTYPES_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_KERNELTYPES_H

#include "runtime/device/cuda/kernels/HeadArguments.h"
#include "runtime/device/cuda/kernels/StepArguments.h"
#include "runtime/device/cuda/kernels/attention/AttentionArguments.h"
#include "runtime/device/cuda/kernels/attention/AttentionTablesArguments.h"
#include "runtime/device/cuda/kernels/product/ProductArguments.h"

#include <cstdint>
#include <type_traits>

namespace dyna {
namespace gpu {

/// Shared memory of kernels without any.
struct NoShared {};

enum class Kernel : int64_t {
#define DYNA_CUDA_KERNEL(name, Arguments, Shared, threads) name,
#include "runtime/device/cuda/kernels/Kernels.def"
  Count
};

template <Kernel kernel> struct KernelRow;

#define DYNA_CUDA_KERNEL(name, ArgumentsType, SharedType, threadCount)         \
  template <> struct KernelRow<Kernel::name> {                                 \
    using Arguments = ArgumentsType;                                           \
    using Shared = SharedType;                                                 \
    static constexpr int threads = threadCount;                                \
    static constexpr int sharedBytes =                                         \
        std::is_empty<Shared>::value ? 0 : static_cast<int>(sizeof(Shared));   \
  };
#include "runtime/device/cuda/kernels/Kernels.def"

/// Blocks that a multiprocessor is to have room for at once, which bounds
/// registers; 0: as ptxas thinks best.
template <Kernel kernel> inline constexpr int kBlocksAtOnce = 0;
template <Kernel kernel>
using ArgumentsOf = typename KernelRow<kernel>::Arguments;
template <Kernel kernel> using SharedOf = typename KernelRow<kernel>::Shared;

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_KERNELTYPES_H
