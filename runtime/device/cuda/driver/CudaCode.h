//===- CudaCode.h - Loads the kernels of a program --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDACODE_H
#define DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDACODE_H

#include "runtime/abi/DeviceCode.h"
#include "runtime/device/cuda/driver/CudaModule.h"

#include <memory>
#include <string>
#include <vector>

namespace dyna {

/// A dyna_device_code on one device: the image for this device, with its
/// kernels looked up by name once, so that launches use numbers.
class CudaCode {
public:
  /// Loads `code`, which must outlive the result. Fails with InvalidArgument if
  /// it has no image for the device, or if a kernel is missing there.
  static StatusOr<std::unique_ptr<CudaCode>>
  load(const std::shared_ptr<cuda::PrimaryContext> &context,
       const dyna_device_code &code);

  /// Fails with InvalidArgument, and the numbers, if there is no kernel of this
  /// number or it has another number of argument bytes.
  Status check(int64_t function, int64_t argumentBytes) const;
  const CudaKernel &kernel(int64_t function) const {
    return kernels_[static_cast<size_t>(function)];
  }
  /// Returns the threads of a block of the kernel.
  int threads(int64_t function) const {
    return code_.functions[function].block;
  }
  /// Returns the bytes of shared memory that a launch gives a block.
  int64_t sharedBytes(int64_t function) const {
    return code_.functions[function].shared_bytes;
  }

private:
  explicit CudaCode(const dyna_device_code &code) : code_(code) {}

  const dyna_device_code &code_;
  std::unique_ptr<CudaModule> module_; ///< null if there are no kernels
  std::vector<CudaKernel> kernels_;
};

/// Describes the images: "sm_80, sm_90, PTX of sm_80"; "emulated"; "none".
std::string describeImages(const dyna_device_code &code);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDACODE_H
