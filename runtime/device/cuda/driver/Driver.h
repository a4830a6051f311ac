//===- Driver.h - Opens CUDA's driver at run time ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Has a table of the functions of DriverApi.h. Library.h describes how the
// library is found; no binary is linked to it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVER_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVER_H

#include "runtime/base/error/Status.h"
#include "runtime/device/cuda/driver/DriverApi.h"

#include <string>

namespace dyna::cuda {

/// Oldest supported version of the driver's interface, as 1000 major + 10
/// minor. It is the first whose drivers load cubins of every minor version of
/// their own major one.
inline constexpr int kOldestDriver = 12000;

/// Formats a version: "12.4" for 12040.
std::string versionText(int version);

struct Driver {
#define DYNA_CUDA_MEMBER(member, symbol, ...)                                  \
  using member##_type = __VA_ARGS__;                                           \
  member##_type *member = nullptr;
  DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_CUDA_MEMBER)
#undef DYNA_CUDA_MEMBER

  int version = 0;  ///< of the driver's interface
  std::string path; ///< of its library
  int devices = 0;  ///< devices of the driver, at least 1

  /// Opens the driver's library, looks up its functions, and initialises it.
  /// Fails with InvalidArgument, in one line, if there is no library, it is too
  /// old, or there is no device. For an old library the message names the
  /// missing function, the version and the one needed.
  static StatusOr<Driver> open();

  /// Returns OK, or a DeviceError with the call, the error's name and its
  /// meaning: "cuMemAlloc of 4 MiB: CUDA_ERROR_... (out of memory)".
  Status check(Result result, const std::string &what) const;
  /// Describes a result: "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is
  /// detected)". It is a number if the driver does not know it.
  std::string describe(Result result) const;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVER_H
