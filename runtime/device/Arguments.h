//===- Arguments.h - What kernels refuse to work with -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Descriptions of kernels (runtime/abi/Kernels.h) that no backend takes:
// DYNA_INVALID_ARGUMENT, with one line in the context that begins with `name`.
// Only the descriptions are read, no tensor.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_ARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_ARGUMENTS_H

#include "runtime/abi/Kernels.h"

namespace dyna {

dyna_status checkMatmul(dyna_context *context, const dyna_matmul *p,
                        const char *name);

/// `element`: bytes of one of the compute type. What a part of a vocabulary must
/// be is left to who works on parts.
dyna_status checkHead(dyna_context *context, const dyna_head *p,
                      int64_t element, const char *name);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_ARGUMENTS_H
