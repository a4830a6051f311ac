//===- DriverMemory.cpp - Memory of the driver's stand-in -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/DriverState.h"

#include <cstdlib>
#include <cstring>

using namespace dyna::standins;

DYNA_STANDIN_EXPORT Result cuMemGetInfo_v2(size_t *available, size_t *total) {
  return inContext([&](CUctx_st &context) {
    *available = context.memory.available();
    *total = context.memory.total();
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuMemAlloc_v2(Address *address, size_t bytes) {
  return inContext([&](CUctx_st &context) -> Result {
    if (bytes == 0)
      return kInvalidValue;
    *address = context.memory.allocate(bytes);
    if (*address == 0)
      return kOutOfMemory;
    ++machine().buffers;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuMemFree_v2(Address address) {
  return inContext([&](CUctx_st &context) -> Result {
    if (!context.streams.finish()) // as the driver: all work that may use it
      endProcess("cuMemFree");
    if (!context.memory.release(address))
      return kInvalidValue;
    --machine().buffers;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuMemHostAlloc(void **data, size_t bytes, unsigned) {
  return inContext([&](CUctx_st &) -> Result {
    if (bytes == 0)
      return kInvalidValue;
    if (posix_memalign(data, 4096, bytes) != 0)
      return kOutOfMemory;
    machine().hostMemory[static_cast<const char *>(*data)] = bytes;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuMemFreeHost(void *data) {
  return inContext([&](CUctx_st &context) -> Result {
    if (machine().hostMemory.erase(static_cast<const char *>(data)) == 0)
      return kInvalidValue;
    if (!context.streams.finish())
      endProcess("cuMemFreeHost");
    free(data);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuMemcpyHtoDAsync_v2(Address target,
                                                const void *source,
                                                size_t bytes,
                                                StreamHandle stream) {
  return inContext([&](CUctx_st &context) -> Result {
    void *to = context.memory.view(target, bytes);
    if (!to || context.memory.overlaps(source, bytes))
      return kInvalidValue;
    checkPageLocked(context, stream, source, "cuMemcpyHtoDAsync");
    return give(context, stream, {DYNA_STANDIN_TO_DEVICE, ""}, [=]() -> Result {
      memcpy(to, source, bytes);
      return kSuccess;
    });
  });
}

DYNA_STANDIN_EXPORT Result cuMemcpyDtoHAsync_v2(void *target, Address source,
                                                size_t bytes,
                                                StreamHandle stream) {
  return inContext([&](CUctx_st &context) -> Result {
    const void *from = context.memory.view(source, bytes);
    if (!from || context.memory.overlaps(target, bytes))
      return kInvalidValue;
    checkPageLocked(context, stream, target, "cuMemcpyDtoHAsync");
    auto copy = [=]() -> Result {
      memcpy(target, from, bytes);
      return kSuccess;
    };
    // What of it came first is nobody's promise: both ends, and not the middle.
    auto tear = [=] {
      const size_t end = bytes / 3;
      memcpy(target, from, end);
      memcpy(static_cast<char *>(target) + bytes - end,
             static_cast<const char *>(from) + bytes - end, end);
    };
    return give(context, stream, {DYNA_STANDIN_TO_HOST, ""}, copy, tear);
  });
}

DYNA_STANDIN_EXPORT Result cuMemcpyDtoDAsync_v2(Address target, Address source,
                                                size_t bytes,
                                                StreamHandle stream) {
  return inContext([&](CUctx_st &context) -> Result {
    void *to = context.memory.view(target, bytes);
    const void *from = context.memory.view(source, bytes);
    if (!to || !from)
      return kInvalidValue;
    return give(context, stream, {DYNA_STANDIN_INSIDE, ""}, [=]() -> Result {
      memmove(to, from, bytes);
      return kSuccess;
    });
  });
}

DYNA_STANDIN_EXPORT Result cuMemsetD8Async(Address target, unsigned char value,
                                           size_t bytes, StreamHandle stream) {
  return inContext([&](CUctx_st &context) -> Result {
    void *to = context.memory.view(target, bytes);
    if (!to)
      return kInvalidValue;
    return give(context, stream, {DYNA_STANDIN_FILL, ""}, [=]() -> Result {
      memset(to, value, bytes);
      return kSuccess;
    });
  });
}

/// `height` rows of `width` bytes, `pitch` bytes apart.
DYNA_STANDIN_EXPORT Result cuMemsetD2D8Async(Address target, size_t pitch,
                                             unsigned char value, size_t width,
                                             size_t height,
                                             StreamHandle stream) {
  return inContext([&](CUctx_st &context) -> Result {
    if (width == 0 || height == 0 || pitch < width)
      return kInvalidValue;
    auto *to = static_cast<char *>(
        context.memory.view(target, pitch * (height - 1) + width));
    if (!to)
      return kInvalidValue;
    return give(context, stream, {DYNA_STANDIN_FILL, ""}, [=]() -> Result {
      for (size_t row = 0; row < height; ++row)
        memset(to + row * pitch, value, width);
      return kSuccess;
    });
  });
}
