//===- CheckSparse.h - Checks arguments of sparse kernels -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Returns DYNA_INVALID_ARGUMENT, with one line in the context that begins with `name`, if
// no backend can work with a description. Only descriptions are read, no tensor and no
// index.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CHECKSPARSE_H
#define DYNA_RUNTIME_DEVICE_CHECKSPARSE_H

#include "runtime/abi/Kernels.h"

namespace dyna {

dyna_status checkSparseProduct(dyna_context *context,
                               const dyna_sparse_product *p, const char *name);
dyna_status checkSparseGradient(dyna_context *context,
                                const dyna_sparse_gradient *p,
                                const char *name);

dyna_status checkSparseMatmul(dyna_context *context,
                              const dyna_sparse_matmul *p, const char *name);
dyna_status checkSparseValues(dyna_context *context,
                              const dyna_sparse_values *p, const char *name);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CHECKSPARSE_H
