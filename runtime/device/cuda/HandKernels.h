//===- HandKernels.h - Launches hand-written kernels ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_HANDKERNELS_H
#define DYNA_RUNTIME_DEVICE_CUDA_HANDKERNELS_H

#include "runtime/device/cuda/CudaKernels.h"
#include "runtime/device/cuda/kernels/FunctionTable.h"

namespace dyna {
namespace cuda {

/// Launches the kernel in `blocks` blocks on the context's stream. The arguments
/// are copied.
template <gpu::Kernel kernel>
dyna_status launch(dyna_context *context,
                   const gpu::ArgumentsOf<kernel> &arguments, int64_t blocks) {
  return launchKernel(context, &dyna_cuda_kernels, static_cast<int64_t>(kernel),
                      &arguments, sizeof(arguments), blocks);
}

} // namespace cuda
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_HANDKERNELS_H
