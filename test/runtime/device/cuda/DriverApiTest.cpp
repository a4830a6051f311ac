//===- DriverApiTest.cpp - Our declarations against the toolkit's ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/driver/DriverApi.h"

#if __has_include(<cuda.h>)
#include <cuda.h>
#define DYNA_HAS_CUDA_HEADER 1
#endif

#include <gtest/gtest.h>

#include <type_traits>

using namespace dyna::cuda;

#ifdef DYNA_HAS_CUDA_HEADER
namespace {

/// As we write a type of the driver's: its enumerations are 32 bits.
template <typename T> struct Ours {
  using type = T;
};
template <typename T> struct Enumeration {
  static_assert(sizeof(T) == 4);
  using type = int32_t;
};
template <typename T>
using Written = typename std::conditional_t<std::is_enum_v<T>, Enumeration<T>,
                                            Ours<T>>::type;
template <typename T> struct Plain {
  using type = Written<T>;
};
template <typename T> struct Plain<T *> {
  using type = typename Plain<T>::type *;
};
template <typename R, typename... A> struct Plain<R(A...)> {
  using type = typename Plain<R>::type(typename Plain<A>::type...);
};

// A name that cuda.h defines to be another one stands for that here.
#define DYNA_CHECK_FUNCTION(member, symbol, ...)                               \
  static_assert(                                                               \
      std::is_same_v<typename Plain<decltype(symbol)>::type, __VA_ARGS__>,     \
      #symbol);
DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_CHECK_FUNCTION)

static_assert(std::is_same_v<CUcontext, Context>);
static_assert(std::is_same_v<CUevent, EventHandle>);
static_assert(std::is_same_v<CUfunction, Function>);
static_assert(std::is_same_v<CUmodule, Module>);
static_assert(std::is_same_v<CUstream, StreamHandle>);
static_assert(std::is_same_v<CUdeviceptr, Address>);
static_assert(std::is_same_v<CUdevice, Ordinal>);

static_assert(kSuccess == CUDA_SUCCESS);
static_assert(kInvalidValue == CUDA_ERROR_INVALID_VALUE);
static_assert(kOutOfMemory == CUDA_ERROR_OUT_OF_MEMORY);
static_assert(kNotInitialized == CUDA_ERROR_NOT_INITIALIZED);
static_assert(kNoDevice == CUDA_ERROR_NO_DEVICE);
static_assert(kInvalidDevice == CUDA_ERROR_INVALID_DEVICE);
static_assert(kInvalidImage == CUDA_ERROR_INVALID_IMAGE);
static_assert(kInvalidContext == CUDA_ERROR_INVALID_CONTEXT);
static_assert(kNoBinaryForGpu == CUDA_ERROR_NO_BINARY_FOR_GPU);
static_assert(kInvalidPtx == CUDA_ERROR_INVALID_PTX);
static_assert(kJitCompilerNotFound == CUDA_ERROR_JIT_COMPILER_NOT_FOUND);
static_assert(kUnsupportedPtxVersion == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
static_assert(kInvalidHandle == CUDA_ERROR_INVALID_HANDLE);
static_assert(kNotFound == CUDA_ERROR_NOT_FOUND);
static_assert(kNotReady == CUDA_ERROR_NOT_READY);
static_assert(kIllegalAddress == CUDA_ERROR_ILLEGAL_ADDRESS);
static_assert(kLaunchOutOfResources == CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
static_assert(kLaunchFailed == CUDA_ERROR_LAUNCH_FAILED);

static_assert(kMultiprocessorCount == CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
static_assert(kCapabilityMajor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
static_assert(kCapabilityMinor == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
static_assert(kMaxSharedPerBlock ==
              CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
static_assert(kMaxDynamicShared ==
              CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
static_assert(kSharedCarveout ==
              CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
static_assert(kJitErrorLog == CU_JIT_ERROR_LOG_BUFFER);
static_assert(kJitErrorLogBytes == CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
static_assert(kStreamNonBlocking == CU_STREAM_NON_BLOCKING);
static_assert(kEventDefault == CU_EVENT_DEFAULT);
static_assert(kHostMemoryPortable == CU_MEMHOSTALLOC_PORTABLE);

} // namespace

TEST(DriverApi, IsTheToolkits) {
  EXPECT_EQ(kLaunchEnd, CU_LAUNCH_PARAM_END);
  EXPECT_EQ(kLaunchBuffer, CU_LAUNCH_PARAM_BUFFER_POINTER);
  EXPECT_EQ(kLaunchBufferBytes, CU_LAUNCH_PARAM_BUFFER_SIZE);
}
#else
TEST(DriverApi, IsTheToolkits) {
  GTEST_SKIP() << "there is no cuda.h to compare with";
}
#endif
