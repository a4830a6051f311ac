//===- Sparse.h - Multiplies with sparse weights ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Kernels for the sparse weights of runtime/abi/Sparse.h. The context is bound
// to a HostDevice. Results have the same bits for any number of threads. Each
// takes 2 * tokens * survivors operations, which it adds to
// `context->matrix_flops`. Scratch is the device's: 32 KB and a panel of the
// output (at most 0.8 MB) for each thread. A product by columns, or of bf16,
// also has a copy of the values in the type of sums.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSE_H
#define DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSE_H

#include "runtime/abi/Sparse.h"

namespace dyna::host {

dyna_status sparseProductF32(dyna_context *context,
                             const dyna_sparse_product *p);
dyna_status sparseProductF64(dyna_context *context,
                             const dyna_sparse_product *p);
dyna_status sparseProductBf16(dyna_context *context,
                              const dyna_sparse_product *p);
dyna_status sparseGradientF32(dyna_context *context,
                              const dyna_sparse_gradient *p);
dyna_status sparseGradientF64(dyna_context *context,
                              const dyna_sparse_gradient *p);
/// x and dy of bf16, the gradient of f32.
dyna_status sparseGradientBf16(dyna_context *context,
                               const dyna_sparse_gradient *p);

} // namespace dyna::host

#endif // DYNA_RUNTIME_DEVICE_HOST_SPARSE_SPARSE_H
