//===- MatrixKernels.h - Declares products and the head on CUDA -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares functions of runtime/abi/Kernels.h, for contexts that are bound to a
// CudaDevice. Matmul.cpp and Head.cpp implement them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_MATRIXKERNELS_H
#define DYNA_RUNTIME_DEVICE_CUDA_MATRIXKERNELS_H

#include "runtime/abi/Kernels.h"

namespace dyna::cuda {

dyna_status matmulF32(dyna_context *context, const dyna_matmul *p);
dyna_status matmulF64(dyna_context *context, const dyna_matmul *p);
dyna_status matmulBf16(dyna_context *context, const dyna_matmul *p);
dyna_status matmulBf16F32(dyna_context *context, const dyna_matmul *p);
dyna_status headF32(dyna_context *context, const dyna_head *p);
dyna_status headF64(dyna_context *context, const dyna_head *p);
dyna_status headBf16(dyna_context *context, const dyna_head *p);

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_MATRIXKERNELS_H
