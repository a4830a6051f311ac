//===- DriverApi.h - Declares the used part of CUDA's driver ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Declares the used types, numbers and functions of CUDA's driver interface, so
// that the build needs no toolkit. DriverApiTest compares all of it with cuda.h
// if that is installed.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVERAPI_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVERAPI_H

#include <cstddef>
#include <cstdint>

// Opaque types have the names of the driver's own.
struct CUctx_st;
struct CUevent_st;
struct CUfunc_st;
struct CUmod_st;
struct CUstream_st;

namespace dyna::cuda {

/// Enumerations of the interface are passed as 32 bits.
using Result = int32_t;
using Ordinal = int32_t; ///< CUdevice
using Context = CUctx_st *;
using EventHandle = CUevent_st *;
using Function = CUfunc_st *;
using Module = CUmod_st *;
using StreamHandle = CUstream_st *;
using Address = unsigned long long; ///< CUdeviceptr

enum : Result {
  kSuccess = 0,
  kInvalidValue = 1,
  kOutOfMemory = 2,
  kNotInitialized = 3,
  kNoDevice = 100,
  kInvalidDevice = 101,
  kInvalidImage = 200,
  kInvalidContext = 201,
  kNoBinaryForGpu = 209,
  kInvalidPtx = 218,
  kJitCompilerNotFound = 221,
  kUnsupportedPtxVersion = 222,
  kInvalidHandle = 400,
  kNotFound = 500,
  kNotReady = 600,
  kIllegalAddress = 700,
  kLaunchOutOfResources = 701,
  kLaunchFailed = 719,
};

enum : int32_t {
  // CUdevice_attribute
  kMultiprocessorCount = 16,
  kCapabilityMajor = 75,
  kCapabilityMinor = 76,
  kMaxSharedPerBlock = 97, ///< with kMaxDynamicShared raised to it
  // CUfunction_attribute
  kMaxDynamicShared = 8,
  kSharedCarveout = 9, ///< percent for shared memory; the rest is cache
  // CUjit_option
  kJitErrorLog = 5,
  kJitErrorLogBytes = 6,
};

enum : uint32_t {
  kStreamNonBlocking = 1,
  kEventDefault = 0,
  kHostMemoryPortable = 1,
};

/// Bytes of dynamic shared memory that every kernel may have.
inline constexpr int64_t kSharedWithoutAsking = 48 << 10;

/// Markers in the list that is `launchKernel`'s last argument.
inline void *const kLaunchEnd = nullptr;
inline void *const kLaunchBuffer = reinterpret_cast<void *>(1);
inline void *const kLaunchBufferBytes = reinterpret_cast<void *>(2);

// clang-format off
/// X(member, function of the library, type), by their names in the library. If
/// an interface has changed, it is the version that all drivers of CUDA 12 and
/// 13 have.
#define DYNA_CUDA_DRIVER_FUNCTIONS(X)                                          \
  X(init, cuInit, Result(unsigned))                                            \
  X(driverVersion, cuDriverGetVersion, Result(int *))                          \
  X(errorName, cuGetErrorName, Result(Result, const char **))                  \
  X(errorString, cuGetErrorString, Result(Result, const char **))              \
  X(deviceCount, cuDeviceGetCount, Result(int *))                              \
  X(device, cuDeviceGet, Result(Ordinal *, int))                               \
  X(deviceName, cuDeviceGetName, Result(char *, int, Ordinal))                 \
  X(deviceAttribute, cuDeviceGetAttribute, Result(int *, int32_t, Ordinal))    \
  X(deviceMemory, cuDeviceTotalMem_v2, Result(size_t *, Ordinal))              \
  X(retainContext, cuDevicePrimaryCtxRetain, Result(Context *, Ordinal))       \
  X(releaseContext, cuDevicePrimaryCtxRelease_v2, Result(Ordinal))             \
  X(setContext, cuCtxSetCurrent, Result(Context))                              \
  X(memoryInfo, cuMemGetInfo_v2, Result(size_t *, size_t *))                   \
  X(allocate, cuMemAlloc_v2, Result(Address *, size_t))                        \
  X(release, cuMemFree_v2, Result(Address))                                    \
  X(allocateHost, cuMemHostAlloc, Result(void **, size_t, unsigned))           \
  X(releaseHost, cuMemFreeHost, Result(void *))                                \
  X(copyToDevice, cuMemcpyHtoDAsync_v2,                                        \
    Result(Address, const void *, size_t, StreamHandle))                       \
  X(copyToHost, cuMemcpyDtoHAsync_v2,                                          \
    Result(void *, Address, size_t, StreamHandle))                             \
  X(copy, cuMemcpyDtoDAsync_v2,                                                \
    Result(Address, Address, size_t, StreamHandle))                            \
  X(fill, cuMemsetD8Async,                                                     \
    Result(Address, unsigned char, size_t, StreamHandle))                      \
  X(fillRows, cuMemsetD2D8Async,                                               \
    Result(Address, size_t, unsigned char, size_t, size_t, StreamHandle))      \
  X(createStream, cuStreamCreate, Result(StreamHandle *, unsigned))            \
  X(destroyStream, cuStreamDestroy_v2, Result(StreamHandle))                   \
  X(queryStream, cuStreamQuery, Result(StreamHandle))                          \
  X(streamWait, cuStreamWaitEvent,                                             \
    Result(StreamHandle, EventHandle, unsigned))                               \
  X(createEvent, cuEventCreate, Result(EventHandle *, unsigned))               \
  X(destroyEvent, cuEventDestroy_v2, Result(EventHandle))                      \
  X(record, cuEventRecord, Result(EventHandle, StreamHandle))                  \
  X(queryEvent, cuEventQuery, Result(EventHandle))                             \
  X(elapsed, cuEventElapsedTime, Result(float *, EventHandle, EventHandle))    \
  X(loadModule, cuModuleLoadDataEx,                                            \
    Result(Module *, const void *, unsigned, int32_t *, void **))              \
  X(unloadModule, cuModuleUnload, Result(Module))                              \
  X(findFunction, cuModuleGetFunction, Result(Function *, Module, const char *)) \
  X(setFunction, cuFuncSetAttribute, Result(Function, int32_t, int))           \
  X(launchKernel, cuLaunchKernel,                                              \
    Result(Function, unsigned, unsigned, unsigned, unsigned, unsigned,         \
           unsigned, unsigned, StreamHandle, void **, void **))
// clang-format on

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVERAPI_H
