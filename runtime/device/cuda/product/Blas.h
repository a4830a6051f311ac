//===- Blas.h - Opens cuBLASLt at run time ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Has a table of the functions of BlasApi.h. Library.h describes how the
// library is found; no binary is linked to it.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLAS_H
#define DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLAS_H

#include "runtime/base/error/Status.h"
#include "runtime/device/cuda/product/BlasApi.h"

#include <string>

namespace dyna::cuda {

/// Oldest supported version of the library, as 10000 major + 100 minor + patch.
inline constexpr int64_t kOldestBlas = 120000;

struct Blas {
#define DYNA_CUDA_MEMBER(member, symbol, ...)                                  \
  using member##_type = __VA_ARGS__;                                           \
  member##_type *member = nullptr;
  DYNA_CUDA_BLAS_FUNCTIONS(DYNA_CUDA_MEMBER)
#undef DYNA_CUDA_MEMBER

  int64_t version = 0; ///< in the form of kOldestBlas
  std::string path;    ///< of the library

  /// Opens the library and looks up its functions. Fails with InvalidArgument,
  /// in one line, if there is no library or it is too old. The message then
  /// names the missing function, the version and the one needed.
  static StatusOr<Blas> open();

  std::string versionText() const; ///< "13.0.2"
  /// Returns the name of a result: "CUBLAS_STATUS_NOT_SUPPORTED".
  std::string describe(BlasResult result) const;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_PRODUCT_BLAS_H
