//===- DriverStandin.cpp - A driver of CUDA without a GPU -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "test/standins/DriverStandin.h"

#include "runtime/device/cuda/DriverApi.h"
#include "test/standins/DeviceMemory.h"
#include "test/standins/Fibers.h"
#include "test/standins/LateStreams.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <set>
#include <string>
#include <vector>

using namespace dyna::cuda;
using dyna::standins::DeviceMemory;
using dyna::standins::LateStream;
using dyna::standins::LateStreams;
using dyna::standins::Mark;
using dyna::standins::Work;

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

namespace {

constexpr int kMaxDevices = 8;

int64_t setting(const char *name, int64_t otherwise) {
  const char *text = std::getenv(name);
  return text && *text ? std::strtoll(text, nullptr, 10) : otherwise;
}

int driverVersionNow() {
#ifdef DYNA_STANDIN_OLD
  return 10020;
#else
  return static_cast<int>(setting("DYNA_STANDIN_DRIVER", 13000));
#endif
}

int devicesNow() {
  int64_t count = setting("DYNA_STANDIN_DEVICES", 1);
  return static_cast<int>(count < kMaxDevices ? count : kMaxDevices);
}

size_t memoryNow() {
  return static_cast<size_t>(setting("DYNA_STANDIN_MEMORY", int64_t(1) << 30));
}

int capabilityNow() {
  return static_cast<int>(setting("DYNA_STANDIN_CAPABILITY", 0));
}

} // namespace

struct CUevent_st {
  std::shared_ptr<Mark> mark; ///< null: never recorded, thus done
};

struct CUfunc_st {
  const dyna_emulated_image *image;
  const dyna_emulated_entry *entry;
};

struct CUmod_st {
  const dyna_emulated_image *image;
  std::vector<std::unique_ptr<CUfunc_st>> functions;
};

/// The primary context of one device.
struct CUctx_st {
  CUctx_st()
      : memory(memoryNow()),
        streams(static_cast<uint64_t>(setting("DYNA_STANDIN_SEED", 0))),
        fault(setting("DYNA_STANDIN_FAULT", 0)),
        hang(setting("DYNA_STANDIN_HANG", 0)) {}

  ~CUctx_st() {
    for (CUevent_st *event : events)
      delete event;
    for (CUmod_st *module : modules)
      delete module;
  }

  DeviceMemory memory;
  LateStreams streams;
  std::set<CUevent_st *> events;
  std::set<CUmod_st *> modules;
  Result error = kSuccess; ///< of work that failed; ends the context
  int64_t fault, hang;     ///< numbers of work; 0: none
  int64_t given = 0;       ///< work so far
};

namespace {

/// All devices of the process. Calls come from any thread, one at a time.
struct Machine {
  std::mutex mutex;
  bool isStarted = false;
  std::unique_ptr<CUctx_st> contexts[kMaxDevices];
  int retained[kMaxDevices] = {};
  std::set<void *> hostMemory;
  int64_t streams = 0; ///< made and not destroyed
  int64_t buffers = 0;
  std::string failure; ///< how the last kernel failed
};

Machine &machine() {
  static auto *only = new Machine; // used until the process ends
  return *only;
}

thread_local CUctx_st *current = nullptr;

[[noreturn]] void endProcess(const char *call) {
  fprintf(stderr, "stand-in: %s would wait for ever\n", call);
  std::abort();
}

/// Calls `function` with the thread's context, one thread at a time.
template <typename F> Result inContext(F function) {
  std::lock_guard<std::mutex> lock(machine().mutex);
  if (!machine().isStarted)
    return kNotInitialized;
  bool isAlive = false;
  for (const auto &context : machine().contexts)
    isAlive |= context && context.get() == current;
  if (!isAlive)
    return kInvalidContext;
  if (current->error != kSuccess)
    return current->error;
  // Work that fails meanwhile is for the next call, or who asks for it.
  return function(*current);
}

LateStream *streamOf(CUctx_st &context, StreamHandle handle) {
  auto *stream = reinterpret_cast<LateStream *>(handle);
  return context.streams.has(stream) ? stream : nullptr;
}

/// Gives the stream a copy, fill or launch, which returns its result when it
/// runs.
template <typename F>
Result give(CUctx_st &context, StreamHandle handle, F run) {
  LateStream *stream = streamOf(context, handle);
  if (!stream) // the default stream too: it would wait for all others
    return kInvalidHandle;
  int64_t number = ++context.given;
  Work work;
  work.hangs = number == context.hang;
  bool faults = number == context.fault;
  work.run = [&context, run, faults] {
    // What failed has ended everything.
    if (context.error == kSuccess)
      context.error = faults ? kIllegalAddress : run();
  };
  context.streams.give(*stream, std::move(work));
  return kSuccess;
}

} // namespace

#define DYNA_STANDIN_EXPORT extern "C" __attribute__((visibility("default")))

DYNA_STANDIN_EXPORT int64_t dyna_standin_live(void) {
  Machine &all = machine();
  std::lock_guard<std::mutex> lock(all.mutex);
  int64_t live =
      static_cast<int64_t>(all.hostMemory.size()) + all.streams + all.buffers;
  for (int device = 0; device < kMaxDevices; ++device) {
    live += all.retained[device];
    if (const auto &context = all.contexts[device])
      live += static_cast<int64_t>(context->events.size() +
                                   context->modules.size());
  }
  return live;
}

DYNA_STANDIN_EXPORT void dyna_standin_reset(void) {
  Machine &all = machine();
  std::lock_guard<std::mutex> lock(all.mutex);
  for (int device = 0; device < kMaxDevices; ++device) {
    if (const auto &context = all.contexts[device])
      context->streams.drop();
    all.contexts[device].reset();
    all.retained[device] = 0;
  }
  for (void *data : all.hostMemory)
    free(data);
  all.hostMemory.clear();
  all.streams = all.buffers = 0;
}

DYNA_STANDIN_EXPORT int64_t dyna_standin_given(void) {
  int64_t given = 0;
  (void)inContext([&](CUctx_st &context) -> Result {
    given = context.given;
    return kSuccess;
  });
  return given;
}

DYNA_STANDIN_EXPORT int64_t dyna_standin_waiting(void) {
  int64_t waiting = 0;
  (void)inContext([&](CUctx_st &context) -> Result {
    waiting = context.streams.waiting();
    return kSuccess;
  });
  return waiting;
}

DYNA_STANDIN_EXPORT int32_t dyna_standin_holds(const void *data, size_t bytes) {
  return inContext([&](CUctx_st &context) -> Result {
           const auto address = reinterpret_cast<uint64_t>(data);
           return context.memory.view(address, bytes) ? kSuccess
                                                      : kInvalidValue;
         }) == kSuccess;
}

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

DYNA_STANDIN_EXPORT Result cuInit(unsigned flags) {
  std::lock_guard<std::mutex> lock(machine().mutex);
  if (flags != 0)
    return kInvalidValue;
  if (devicesNow() == 0)
    return kNoDevice;
  machine().isStarted = true;
  return kSuccess;
}

DYNA_STANDIN_EXPORT Result cuDriverGetVersion(int *version) {
  *version = driverVersionNow();
  return kSuccess;
}

namespace {

struct ErrorText {
  Result result;
  const char *name, *meaning;
};

constexpr ErrorText kErrors[] = {
    {kSuccess, "CUDA_SUCCESS", "no error"},
    {kInvalidValue, "CUDA_ERROR_INVALID_VALUE", "invalid argument"},
    {kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY", "out of memory"},
    {kNotInitialized, "CUDA_ERROR_NOT_INITIALIZED", "initialization error"},
    {kNoDevice, "CUDA_ERROR_NO_DEVICE", "no CUDA-capable device is detected"},
    {kInvalidDevice, "CUDA_ERROR_INVALID_DEVICE", "invalid device ordinal"},
    {kInvalidImage, "CUDA_ERROR_INVALID_IMAGE",
     "device kernel image is invalid"},
    {kInvalidContext, "CUDA_ERROR_INVALID_CONTEXT", "invalid device context"},
    {kInvalidPtx, "CUDA_ERROR_INVALID_PTX", "a PTX JIT compilation failed"},
    {kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE", "invalid resource handle"},
    {kNotFound, "CUDA_ERROR_NOT_FOUND", "named symbol not found"},
    {kNotReady, "CUDA_ERROR_NOT_READY", "device not ready"},
    {kIllegalAddress, "CUDA_ERROR_ILLEGAL_ADDRESS",
     "an illegal memory access was encountered"},
    {kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED", "unspecified launch failure"},
};

const ErrorText *textOf(Result result) {
  for (const ErrorText &text : kErrors)
    if (text.result == result)
      return &text;
  return nullptr;
}

} // namespace

DYNA_STANDIN_EXPORT Result cuGetErrorName(Result result, const char **name) {
  const ErrorText *text = textOf(result);
  *name = text ? text->name : nullptr;
  return text ? kSuccess : kInvalidValue;
}

/// Says more than a driver: how a kernel failed.
DYNA_STANDIN_EXPORT Result cuGetErrorString(Result result,
                                            const char **meaning) {
  const ErrorText *text = textOf(result);
  *meaning = text ? text->meaning : nullptr;
  if (result == kLaunchFailed && !machine().failure.empty())
    *meaning = machine().failure.c_str();
  return text ? kSuccess : kInvalidValue;
}

DYNA_STANDIN_EXPORT Result cuDeviceGetCount(int *count) {
  *count = devicesNow();
  return kSuccess;
}

DYNA_STANDIN_EXPORT Result cuDeviceGet(Ordinal *device, int ordinal) {
  *device = ordinal;
  return ordinal >= 0 && ordinal < devicesNow() ? kSuccess : kInvalidDevice;
}

DYNA_STANDIN_EXPORT Result cuDeviceGetName(char *name, int bytes, Ordinal) {
  snprintf(name, static_cast<size_t>(bytes), "stand-in");
  return kSuccess;
}

DYNA_STANDIN_EXPORT Result cuDeviceGetAttribute(int *value, int32_t attribute,
                                                Ordinal) {
  switch (attribute) {
  case kMultiprocessorCount:
    *value = 4;
    return kSuccess;
  case kCapabilityMajor:
    *value = capabilityNow() / 10;
    return kSuccess;
  case kCapabilityMinor:
    *value = capabilityNow() % 10;
    return kSuccess;
  case kMaxSharedPerBlock:
    *value = 227 << 10;
    return kSuccess;
  default:
    return kInvalidValue;
  }
}

DYNA_STANDIN_EXPORT Result cuDeviceTotalMem_v2(size_t *bytes, Ordinal) {
  *bytes = memoryNow();
  return kSuccess;
}

DYNA_STANDIN_EXPORT Result cuDevicePrimaryCtxRetain(Context *context,
                                                    Ordinal device) {
  Machine &all = machine();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (!all.isStarted)
    return kNotInitialized;
  if (device < 0 || device >= devicesNow())
    return kInvalidDevice;
  if (all.retained[device]++ == 0)
    all.contexts[device] = std::make_unique<CUctx_st>();
  *context = all.contexts[device].get();
  return kSuccess;
}

#ifndef DYNA_STANDIN_OLD
DYNA_STANDIN_EXPORT Result cuDevicePrimaryCtxRelease_v2(Ordinal device) {
  Machine &all = machine();
  std::lock_guard<std::mutex> lock(all.mutex);
  if (device < 0 || device >= kMaxDevices || all.retained[device] == 0)
    return kInvalidContext;
  if (--all.retained[device] > 0)
    return kSuccess;
  CUctx_st &context = *all.contexts[device];
  if (context.error == kSuccess && !context.streams.finish())
    endProcess("cuDevicePrimaryCtxRelease");
  all.contexts[device].reset();
  return kSuccess;
}
#endif

DYNA_STANDIN_EXPORT Result cuCtxSetCurrent(Context context) {
  current = context;
  return kSuccess;
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

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
    machine().hostMemory.insert(*data);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuMemFreeHost(void *data) {
  return inContext([&](CUctx_st &context) -> Result {
    if (machine().hostMemory.erase(data) == 0)
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
    return give(context, stream, [=]() -> Result {
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
    return give(context, stream, [=]() -> Result {
      memcpy(target, from, bytes);
      return kSuccess;
    });
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
    return give(context, stream, [=]() -> Result {
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
    return give(context, stream, [=]() -> Result {
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
    return give(context, stream, [=]() -> Result {
      for (size_t row = 0; row < height; ++row)
        memset(to + row * pitch, value, width);
      return kSuccess;
    });
  });
}

//===----------------------------------------------------------------------===//
// Streams and events
//===----------------------------------------------------------------------===//

DYNA_STANDIN_EXPORT Result cuStreamCreate(StreamHandle *stream, unsigned) {
  return inContext([&](CUctx_st &context) {
    *stream = reinterpret_cast<StreamHandle>(context.streams.create());
    ++machine().streams;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuStreamDestroy_v2(StreamHandle handle) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream)
      return kInvalidHandle;
    context.streams.destroy(stream);
    --machine().streams;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuStreamQuery(StreamHandle handle) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream)
      return kInvalidHandle;
    context.streams.askFor(*stream, nullptr);
    if (context.error != kSuccess)
      return context.error;
    return stream->isIdle() ? kSuccess : kNotReady;
  });
}

DYNA_STANDIN_EXPORT Result cuStreamWaitEvent(StreamHandle handle,
                                             EventHandle event, unsigned) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream || context.events.count(event) == 0)
      return kInvalidHandle;
    if (event->mark && !event->mark->isDone)
      context.streams.give(*stream, {nullptr, event->mark, true});
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventCreate(EventHandle *event, unsigned) {
  return inContext([&](CUctx_st &context) {
    *event = new CUevent_st;
    context.events.insert(*event);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventDestroy_v2(EventHandle event) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.events.erase(event) == 0)
      return kInvalidHandle;
    delete event;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventRecord(EventHandle event,
                                         StreamHandle handle) {
  return inContext([&](CUctx_st &context) -> Result {
    LateStream *stream = streamOf(context, handle);
    if (!stream || context.events.count(event) == 0)
      return kInvalidHandle;
    event->mark = context.streams.record(*stream);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuEventQuery(EventHandle event) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.events.count(event) == 0)
      return kInvalidHandle;
    std::shared_ptr<Mark> mark = event->mark;
    if (!mark || mark->isDone)
      return kSuccess;
    context.streams.askFor(*mark->stream, mark.get());
    if (context.error != kSuccess)
      return context.error;
    return mark->isDone ? kSuccess : kNotReady;
  });
}

/// A millisecond for each piece of work.
DYNA_STANDIN_EXPORT Result cuEventElapsedTime(float *milliseconds,
                                              EventHandle begin,
                                              EventHandle end) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.events.count(begin) == 0 || context.events.count(end) == 0 ||
        !begin->mark || !end->mark)
      return kInvalidHandle;
    if (!begin->mark->isDone || !end->mark->isDone)
      return kNotReady;
    *milliseconds = static_cast<float>(end->mark->time - begin->mark->time);
    return kSuccess;
  });
}

//===----------------------------------------------------------------------===//
// Modules and kernels
//===----------------------------------------------------------------------===//

DYNA_STANDIN_EXPORT Result cuModuleLoadDataEx(Module *module, const void *image,
                                              unsigned count, int32_t *options,
                                              void **values) {
  return inContext([&](CUctx_st &context) -> Result {
    const auto *table = static_cast<const dyna_emulated_image *>(image);
    bool isTable =
        strcmp(table->magic, DYNA_EMULATED_MAGIC) == 0 && // others are shorter
        table->byte_size == sizeof(dyna_emulated_image);
    if (!isTable) {
      // Of PTX the first line is "read", for a log.
      size_t bytes = 0;
      for (unsigned i = 0; i < count; ++i)
        if (options[i] == kJitErrorLogBytes)
          bytes = reinterpret_cast<size_t>(values[i]);
      for (unsigned i = 0; i < count && bytes > 0; ++i)
        if (options[i] == kJitErrorLog)
          snprintf(static_cast<char *>(values[i]), bytes,
                   "line 1: the stand-in knows no PTX\nand so on\n");
      return count > 0 ? kInvalidPtx : kInvalidImage;
    }
    *module = new CUmod_st{table, {}};
    context.modules.insert(*module);
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuModuleUnload(Module module) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.modules.count(module) == 0)
      return kInvalidHandle;
    if (!context.streams.finish())
      endProcess("cuModuleUnload");
    context.modules.erase(module);
    delete module;
    return kSuccess;
  });
}

DYNA_STANDIN_EXPORT Result cuModuleGetFunction(Function *function,
                                               Module module,
                                               const char *name) {
  return inContext([&](CUctx_st &context) -> Result {
    if (context.modules.count(module) == 0)
      return kInvalidHandle;
    const dyna_emulated_image &image = *module->image;
    for (int64_t i = 0; i < image.count; ++i)
      if (strcmp(image.kernels[i].name, name) == 0) {
        module->functions.push_back(
            std::make_unique<CUfunc_st>(CUfunc_st{&image, &image.kernels[i]}));
        *function = module->functions.back().get();
        return kSuccess;
      }
    return kNotFound;
  });
}

DYNA_STANDIN_EXPORT Result cuFuncSetAttribute(Function, int32_t, int) {
  return inContext([](CUctx_st &) { return kSuccess; });
}

DYNA_STANDIN_EXPORT Result cuLaunchKernel(Function function, unsigned gridX,
                                          unsigned gridY, unsigned gridZ,
                                          unsigned blockX, unsigned blockY,
                                          unsigned blockZ, unsigned,
                                          StreamHandle stream, void **params,
                                          void **extra) {
  return inContext([&](CUctx_st &context) -> Result {
    // One struct of arguments, and one dimension, are all that is emulated.
    if (params || !extra || gridX == 0 || gridY != 1 || gridZ != 1 ||
        blockX == 0 || blockX > DYNA_EMULATED_MAX_BLOCK || blockY != 1 ||
        blockZ != 1)
      return kInvalidValue;
    const char *data = nullptr;
    size_t bytes = 0;
    for (; *extra != kLaunchEnd; extra += 2) {
      if (*extra == kLaunchBuffer)
        data = static_cast<const char *>(extra[1]);
      else if (*extra == kLaunchBufferBytes)
        bytes = *static_cast<const size_t *>(extra[1]);
      else
        return kInvalidValue;
    }
    const dyna_emulated_entry &entry = *function->entry;
    if (!data || static_cast<int64_t>(bytes) != entry.argument_bytes)
      return kInvalidValue;
    // The driver copies arguments when it is called; so that the kernel may
    // have any alignment, into whole words.
    auto arguments = std::make_shared<std::vector<std::max_align_t>>(
        bytes / sizeof(std::max_align_t) + 1);
    memcpy(arguments->data(), data, bytes);
    auto run = [&context, arguments, image = function->image, entry, gridX,
                blockX]() -> Result {
      dyna_emulated_launch launch = {entry.name,
                                     entry.kernel,
                                     arguments->data(),
                                     static_cast<int32_t>(gridX),
                                     static_cast<int32_t>(blockX),
                                     context.streams.random().next()};
      char message[512] = "";
      context.memory.open();
      int32_t failed = image->run(&launch, message, sizeof(message));
      context.memory.close();
      if (failed)
        machine().failure = message;
      return failed ? kLaunchFailed : kSuccess;
    };
    return give(context, stream, run);
  });
}

// Every function has the type that the device calls it by.
namespace {

template <typename Ours, typename Declared> constexpr bool isSame = false;
template <typename T> constexpr bool isSame<T, T> = true;

#ifndef DYNA_STANDIN_OLD
#define DYNA_STANDIN_CHECK(member, symbol, ...)                                \
  static_assert(isSame<decltype(symbol), __VA_ARGS__>, #symbol);
DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_STANDIN_CHECK)
#endif

} // namespace
