//===- DriverStandin.cpp - A driver of CUDA without a GPU -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Devices, contexts, and what tests ask; the rest is beside this file.
//
//===----------------------------------------------------------------------===//

#include "test/standins/DriverStandin.h"

#include "test/standins/DriverState.h"

#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>

using namespace dyna::standins;

//===----------------------------------------------------------------------===//
// What there is
//===----------------------------------------------------------------------===//

namespace {

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

CUctx_st::CUctx_st()
    : memory(memoryNow()),
      streams(static_cast<uint64_t>(setting("DYNA_STANDIN_SEED", 0))),
      fault(setting("DYNA_STANDIN_FAULT", 0)),
      hang(setting("DYNA_STANDIN_HANG", 0)) {}

CUctx_st::~CUctx_st() {
  for (CUevent_st *event : events)
    delete event;
  for (CUmod_st *module : modules)
    delete module;
}

Machine &dyna::standins::machine() {
  static auto *only = new Machine; // used until the process ends
  return *only;
}

thread_local CUctx_st *dyna::standins::current = nullptr;

void dyna::standins::endProcess(const char *call) {
  fprintf(stderr, "stand-in: %s would wait for ever\n", call);
  std::abort();
}

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
  for (const auto &[begin, bytes] : all.hostMemory)
    free(const_cast<char *>(begin));
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

DYNA_STANDIN_EXPORT int64_t dyna_standin_pageable(void) {
  int64_t copies = 0;
  (void)inContext([&](CUctx_st &) -> Result {
    copies = machine().pageableCopies;
    return kSuccess;
  });
  return copies;
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

/// Who is told of work that has run, or null.
static std::atomic<dyna_standin_observer> observer = nullptr;

DYNA_STANDIN_EXPORT void dyna_standin_observe(dyna_standin_observer who) {
  observer = who;
}

int64_t dyna::standins::nanosecondsNow() {
  return std::chrono::steady_clock::now().time_since_epoch() /
         std::chrono::nanoseconds(1);
}

void Named::observe(const LateStream *stream, int64_t begin,
                    int64_t end) const {
  if (dyna_standin_observer who = observer)
    who(kind, name.c_str(),
        static_cast<uint32_t>(reinterpret_cast<uintptr_t>(stream) / 16), begin,
        end);
}

//===----------------------------------------------------------------------===//
// Devices and contexts
//===----------------------------------------------------------------------===//

namespace {

/// Once, and with no lock held: it may ask the driver.
void loadInjection() {
  static std::once_flag once;
  std::call_once(once, [] {
    const char *path = std::getenv("CUDA_INJECTION64_PATH");
    void *library = path ? dlopen(path, RTLD_NOW) : nullptr;
    void *begin = library ? dlsym(library, "InitializeInjection") : nullptr;
    if (begin)
      reinterpret_cast<int (*)()>(begin)();
  });
}

} // namespace

DYNA_STANDIN_EXPORT Result cuInit(unsigned flags) {
  loadInjection();
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
  const char *text = std::getenv("DYNA_STANDIN_NAME");
  snprintf(name, static_cast<size_t>(bytes), "%s",
           text && *text ? text : "stand-in");
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
    *value = kMaxSharedBytes;
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
