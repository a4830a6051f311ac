//===- Failure.h - Reports failures of kernels ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_FAILURE_H
#define DYNA_RUNTIME_DEVICE_FAILURE_H

#include "runtime/abi/Abi.h"
#include "runtime/base/text/Text.h"

namespace dyna {

/// Leaves the formatted text in the context and returns `code`.
template <typename... T>
dyna_status fail(dyna_context *context, dyna_status code, const char *format,
                 const T &...values)
    DYNA_CHECK_FORMAT(detail::fitsFormat<T...>(format)) {
  if (context && context->message && context->message_capacity > 0)
    formatInto(context->message, static_cast<size_t>(context->message_capacity),
               format, values...);
  return code;
}

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_FAILURE_H
