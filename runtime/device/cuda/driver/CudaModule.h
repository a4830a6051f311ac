//===- CudaModule.h - Code of a CUDA device ---------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDAMODULE_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDAMODULE_H

#include "runtime/device/cuda/driver/PrimaryContext.h"

#include <memory>
#include <string>
#include <vector>

namespace dyna {

/// One translation of the same kernels. The bytes must stay while it is loaded.
struct CudaImage {
  int capability; ///< of the device it is for, 10 major + minor: 90 for sm_90
  /// Text, 0-terminated, which the driver compiles for its device when it is
  /// loaded, for `capability` or any later; else machine code (a cubin), which
  /// runs on devices of the same major and no lower minor capability.
  bool isPtx;
  const void *data;
};

/// A kernel of a loaded module, which must outlive it.
struct CudaKernel {
  cuda::Function function = nullptr;
  const char *name = "";
};

/// Kernels of one device. May outlive the device; must live until work with its
/// kernels is done, which its destruction waits for.
class CudaModule {
public:
  ~CudaModule();
  CudaModule(const CudaModule &) = delete;
  CudaModule &operator=(const CudaModule &) = delete;

  /// InvalidArgument when the module has no kernel of that name. A kernel that
  /// wants more shared memory than every device has (48 KiB) says how many
  /// `sharedBytes` its launches give at most.
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

/// The image of `images` that a device of `capability` runs best: the machine
/// code closest to it, else PTX; null when there is none.
const CudaImage *chooseImage(const std::vector<CudaImage> &images,
                             int capability);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDAMODULE_H
