//===- CheckAttention.h - Checks the arguments of attention -----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Returns DYNA_INVALID_ARGUMENT, with one line in the context that begins with
// `name`, for descriptions that are wrong for every backend. Only descriptions
// are read. Tensors and the array of segments are on the device.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CHECKATTENTION_H
#define DYNA_RUNTIME_DEVICE_CHECKATTENTION_H

#include "runtime/abi/Kernels.h"

namespace dyna {

dyna_status checkAttention(dyna_context *context, const dyna_attention *p,
                           const char *name);
dyna_status checkAttentionGrad(dyna_context *context,
                               const dyna_attention_grad *p, const char *name);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CHECKATTENTION_H
