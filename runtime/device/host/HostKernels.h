//===- HostKernels.h - Declares the kernels of the host ---------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Implements the functions that runtime/abi/Kernels.h describes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_HOSTKERNELS_H
#define DYNA_RUNTIME_DEVICE_HOST_HOSTKERNELS_H

#include "runtime/abi/Kernels.h"

namespace dyna::host {

dyna_status launch(dyna_context *context, dyna_rows_body body, const void *args,
                   int64_t argsBytes, int64_t rows, int64_t minRows);
dyna_status checkIds(dyna_context *context, const int32_t *ids, int64_t count,
                     int64_t rows);
dyna_status checkPositions(dyna_context *context, const int64_t *positions,
                           int64_t count, int64_t rows);
dyna_status matmulF32(dyna_context *context, const dyna_matmul *p);
dyna_status matmulBf16(dyna_context *context, const dyna_matmul *p);
dyna_status matmulBf16F32(dyna_context *context, const dyna_matmul *p);
dyna_status sparseMatmulF32(dyna_context *context, const dyna_sparse_matmul *p);
dyna_status sparseMatmulF64(dyna_context *context, const dyna_sparse_matmul *p);
dyna_status sparseMatmulBf16(dyna_context *context,
                             const dyna_sparse_matmul *p);
dyna_status sparseMatmulBf16F32(dyna_context *context,
                                const dyna_sparse_matmul *p);
dyna_status takeSparseValues(dyna_context *context,
                             const dyna_sparse_values *p);
dyna_status attentionF32(dyna_context *context, const dyna_attention *p);
dyna_status attentionF64(dyna_context *context, const dyna_attention *p);
dyna_status attentionBf16(dyna_context *context, const dyna_attention *p);
dyna_status attentionGradF32(dyna_context *context,
                             const dyna_attention_grad *p);
dyna_status attentionGradF64(dyna_context *context,
                             const dyna_attention_grad *p);
dyna_status attentionGradBf16(dyna_context *context,
                              const dyna_attention_grad *p);
dyna_status headF32(dyna_context *context, const dyna_head *p);
dyna_status headF64(dyna_context *context, const dyna_head *p);
dyna_status headBf16(dyna_context *context, const dyna_head *p);
dyna_status noteLosses(dyna_context *context, const double *losses,
                       int64_t count, double *squaredNorm);
dyna_status clipNorm(dyna_context *context, const dyna_clip *p);
dyna_status placeRows(dyna_context *context, const dyna_place *p);

} // namespace dyna::host

#endif // DYNA_RUNTIME_DEVICE_HOST_HOSTKERNELS_H
