//===- CudaModule.h - Loads code of a CUDA device ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDAMODULE_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDAMODULE_H

#include "runtime/device/cuda/driver/PrimaryContext.h"

#include <memory>
#include <string>
#include <vector>

namespace dyna {

/// One translation of a set of kernels. The bytes must outlive the loaded
/// module.
struct CudaImage {
  int capability; ///< 10 major + minor: 90 for sm_90
  /// True for PTX: 0-terminated text that the driver compiles at load time, for
  /// `capability` or any later one. Otherwise machine code (a cubin). It runs
  /// on devices of the same major and no lower minor capability.
  bool isPtx;
  const void *data;
};

/// A kernel of a loaded module, which must outlive it.
struct CudaKernel {
  cuda::Function function = nullptr;
  const char *name = "";
};

/// Kernels of one device. They may outlive the device. Destruction waits until
/// work with the kernels is done.
class CudaModule {
public:
  ~CudaModule();
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;

  /// Finds a kernel. Fails with InvalidArgument if the module has none of that
  /// name. `sharedBytes` is the largest shared memory of its launches, if that
  /// is more than every device has (48 KiB).
  StatusOr<CudaKernel> kernel(const std::string &name, int64_t sharedBytes = 0);

private:
  friend class CudaCode;
  friend class CudaDevice;
  CudaModule(std::shared_ptr<cuda::PrimaryContext> context, cuda::Module module)
      : context_(std::move(context)), module_(module) {}
  static StatusOr<std::unique_ptr<CudaModule>>
  load(const std::shared_ptr<cuda::PrimaryContext> &context,
       const std::vector<CudaImage> &images);

  std::shared_ptr<cuda::PrimaryContext> context_;
  cuda::Module module_;
};

/// Returns the image that a device of `capability` runs best: the closest
/// machine code, else PTX; null if there is none.
const CudaImage *chooseImage(const std::vector<CudaImage> &images,
                             int capability);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDAMODULE_H
