//===- CudaKernels.h - Declares the kernels of CUDA devices -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the functions that runtime/abi/Kernels.h describes. Their context
// is bound to a CudaDevice (CudaDevice::of). They give it work and wait for
// nothing.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_CUDAKERNELS_H
#define DYNA_RUNTIME_DEVICE_CUDA_CUDAKERNELS_H

#include "runtime/abi/DeviceCode.h"
#include "runtime/abi/Kernels.h"
#include "runtime/base/error/Status.h"
#include "runtime/device/cuda/kernels/StepArguments.h"

namespace dyna {

/// Returns the available functions; a null one is refused by its name.
const dyna_kernels &cudaKernels();

namespace cuda {

/// Returns the status of a call, and copies its message into the context.
dyna_status give(dyna_context *context, const Status &status);

dyna_status launchKernel(dyna_context *context, const dyna_device_code *code,
                         int64_t function, const void *args, int64_t argsBytes,
                         int64_t grid);

dyna_status attentionF32(dyna_context *context, const dyna_attention *p);
dyna_status attentionF64(dyna_context *context, const dyna_attention *p);
dyna_status attentionBf16(dyna_context *context, const dyna_attention *p);
dyna_status attentionGradF32(dyna_context *context,
                             const dyna_attention_grad *p);
dyna_status attentionGradF64(dyna_context *context,
                             const dyna_attention_grad *p);
dyna_status attentionGradBf16(dyna_context *context,
                              const dyna_attention_grad *p);
dyna_status checkIds(dyna_context *context, const int32_t *ids, int64_t count,
                     int64_t rows);
dyna_status checkPositions(dyna_context *context, const int64_t *positions,
                           int64_t count, int64_t rows);
dyna_status noteLosses(dyna_context *context, const double *losses,
                       int64_t count, double *squaredNorm);
dyna_status clipNorm(dyna_context *context, const dyna_clip *p);
dyna_status placeRows(dyna_context *context, const dyna_place *p);
/// Returns the failure that a check has stored for the host; OK if there is
/// none.
Status explainBadRow(const gpu::BadRow &bad);

} // namespace cuda
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_CUDAKERNELS_H
