//===- Library.h - Opens libraries at run time ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Opens all shared libraries of CUDA. No binary is linked to them, so it starts
// without them, and then tells what is missing.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_LIBRARY_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_LIBRARY_H

#include "runtime/base/error/Status.h"

#include <string>
#include <vector>

namespace dyna::cuda {

/// Environment variable with folders, separated by ':', that are searched for
/// libraries before the system's own.
inline constexpr const char *kLibraryPathVariable = "DYNA_CUDA_LIBRARY_PATH";

/// An open library. It stays open until the process ends, because libraries of
/// CUDA leave threads running. Objects may be copied freely.
class Library {
public:
  /// Opens the first library of `names` that is found ("libcuda.so.1", the
  /// preferred one first). Searches for each in the folders of
  /// DYNA_CUDA_LIBRARY_PATH, then where the system looks. Fails with
  /// InvalidArgument, and names the searched places. If a file in one of the
  /// folders cannot be opened, it fails with the reason.
  static StatusOr<Library> open(const std::vector<std::string> &names);

  /// Returns the address of a function or variable; null if there is none of
  /// that name.
  void *find(const char *symbol) const;
  /// Returns the file that was opened, or the name by which the system found
  /// it.
  const std::string &path() const { return path_; }

private:
  Library(void *handle, std::string path)
      : handle_(handle), path_(std::move(path)) {}

  void *handle_;
  std::string path_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_LIBRARY_H
