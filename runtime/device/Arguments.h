//===- Arguments.h - Checks the arguments of products and of the head -----===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Returns DYNA_INVALID_ARGUMENT for descriptions (runtime/abi/Kernels.h) that
// no backend accepts. The context then has one line that begins with `name`.
// Only the descriptions are read, no tensor.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_ARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_ARGUMENTS_H

#include "runtime/abi/Kernels.h"

namespace dyna {

dyna_status checkMatmul(dyna_context *context, const dyna_matmul *p,
                        const char *name);

/// `element`: bytes of an element of the compute type. A part of a vocabulary
/// is checked by the backends that support one.
dyna_status checkHead(dyna_context *context, const dyna_head *p,
                      int64_t element, const char *name);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_ARGUMENTS_H
