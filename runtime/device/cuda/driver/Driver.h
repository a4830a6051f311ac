//===- Driver.h - CUDA's driver, opened at run time -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A table of the functions of DriverApi.h. The library is looked for as Library.h
// says; no binary is linked to it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVER_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVER_H

#include "runtime/base/error/Status.h"
#include "runtime/device/cuda/driver/DriverApi.h"

#include <string>

namespace dyna::cuda {

/// Oldest version of the driver's interface that is taken, 1000 major + 10 minor:
/// the first whose drivers load cubins of every minor version of their own major
/// one.
inline constexpr int kOldestDriver = 12000;

/// "12.4" of 12040.
std::string versionText(int version);

struct Driver {
#define DYNA_CUDA_MEMBER(member, symbol, ...)                                  \
  using member##_type = __VA_ARGS__;                                           \
  member##_type *member = nullptr;
  DYNA_CUDA_DRIVER_FUNCTIONS(DYNA_CUDA_MEMBER)
#undef DYNA_CUDA_MEMBER

  int version = 0;  ///< of the driver's interface
  std::string path; ///< of its library
  int devices = 0;  ///< that it knows, at least 1

  /// Opens the driver's library, looks its functions up, initialises it. Fails
  /// with InvalidArgument in one line: no library, one that is too old (with the
  /// function that it lacks, its version and the one needed), no device.
  static StatusOr<Driver> open();

  /// OK, or a DeviceError that says what failed, with the error's name and
  /// meaning: "cuMemAlloc of 4 MiB: CUDA_ERROR_... (out of memory)".
  Status check(Result result, const std::string &what) const;
  /// "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)"; a number where
  /// the driver knows none.
  std::string describe(Result result) const;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_DRIVER_H
