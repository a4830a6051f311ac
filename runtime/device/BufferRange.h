//===- BufferRange.h - Ranges of buffers ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_BUFFERRANGE_H
#define DYNA_RUNTIME_DEVICE_BUFFERRANGE_H

#include "runtime/base/Text.h"
#include "runtime/device/Device.h"

namespace dyna {

/// Whether `bytes` bytes at `offset` lie in the buffer; else InvalidArgument,
/// which calls it `what` ("copy").
inline Status checkRange(const Buffer &buffer, int64_t offset, int64_t bytes,
                         const char *what) {
  if (offset < 0 || bytes < 0 || offset > buffer.bytes() ||
      bytes > buffer.bytes() - offset)
    return Status::invalidArgument(
        formatText("%s of %d bytes at offset %d of a buffer of %d", what, bytes,
                   offset, buffer.bytes()));
  return Status::ok();
}

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_BUFFERRANGE_H
