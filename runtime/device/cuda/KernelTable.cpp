//===- KernelTable.cpp - Lists the kernels of CUDA devices ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaKernels.h"

#include "runtime/device/Failure.h"
#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/MatrixKernels.h"

using namespace dyna;
using namespace dyna::cuda;

const dyna_kernels &dyna::cudaKernels() {
  static const dyna_kernels table = [] {
    dyna_kernels kernels = {};
    kernels.backend = "cuda";
    kernels.launch_kernel = launchKernel;
    kernels.matmul_f32 = matmulF32;
    kernels.matmul_f64 = matmulF64;
    kernels.matmul_bf16 = matmulBf16;
    kernels.matmul_bf16_f32 = matmulBf16F32;
    kernels.head_f32 = headF32;
    kernels.head_f64 = headF64;
    kernels.head_bf16 = headBf16;
    kernels.attention_f32 = attentionF32;
    kernels.attention_f64 = attentionF64;
    kernels.attention_bf16 = attentionBf16;
    kernels.attention_grad_f32 = attentionGradF32;
    kernels.attention_grad_f64 = attentionGradF64;
    kernels.attention_grad_bf16 = attentionGradBf16;
    kernels.check_ids = checkIds;
    kernels.check_positions = checkPositions;
    kernels.note_losses = noteLosses;
    kernels.clip_norm = clipNorm;
    kernels.place_rows = placeRows;
    return kernels;
  }();
  return table;
}

dyna_status cuda::give(dyna_context *context, const Status &status) {
  if (status.isOk())
    return DYNA_OK;
  return fail(context, static_cast<dyna_status>(status.code()), "%s",
              status.message());
}

dyna_status cuda::launchKernel(dyna_context *context,
                               const dyna_device_code *code, int64_t function,
                               const void *args, int64_t argsBytes,
                               int64_t grid) {
  if (!code || (argsBytes > 0 && !args))
    return fail(context, DYNA_INVALID_ARGUMENT,
                "launch_kernel without code, or without arguments");
  return give(context, CudaDevice::of(*context).launch(
                           static_cast<StreamHandle>(context->stream), *code,
                           function, grid, args, argsBytes));
}
