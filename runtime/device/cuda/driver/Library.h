//===- Library.h - Libraries opened at run time -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The one place that opens shared libraries of CUDA: no binary is linked to
// them, so that it starts, and says what it lacks, where there are none.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_LIBRARY_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_LIBRARY_H

#include "runtime/base/error/Status.h"

#include <string>
#include <vector>

namespace dyna::cuda {

/// Folders, with ':' between them, in which libraries are looked for before the
/// system's own.
inline constexpr const char *kLibraryPathVariable = "DYNA_CUDA_LIBRARY_PATH";

/// An open library. It stays open until the process ends, since those of CUDA
/// leave threads behind; objects may be copied freely.
class Library {
public:
  /// Opens the first that is found of `names` ("libcuda.so.1", the preferred one
  /// first), each in the folders of DYNA_CUDA_LIBRARY_PATH, then where the system
  /// looks. Fails with InvalidArgument, naming where it looked; a file in one of
  /// the folders that is there but cannot be opened fails with the reason.
  static StatusOr<Library> open(const std::vector<std::string> &names);

  /// The address of a function or variable; null when it has none of that name.
  void *find(const char *symbol) const;
  /// The file that was opened, or the name by which the system found it.
  const std::string &path() const { return path_; }

private:
  Library(void *handle, std::string path)
      : handle_(handle), path_(std::move(path)) {}

  void *handle_;
  std::string path_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_LIBRARY_H
