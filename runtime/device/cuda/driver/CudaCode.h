//===- CudaCode.h - The kernels that a program brings -----------*- C++ -*-===//
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

/// A dyna_device_code on one device: the image that suits it, with its kernels
/// found by their names once, so that launches go by number.
class CudaCode {
public:
  /// `code` stays where it is. InvalidArgument when it has no image for the
  /// device, or none of its kernels there.
  static StatusOr<std::unique_ptr<CudaCode>>
  load(const std::shared_ptr<cuda::PrimaryContext> &context,
       const dyna_device_code &code);

  /// InvalidArgument, with the numbers, when there is no kernel of this number or
  /// it takes another number of bytes.
  Status check(int64_t function, int64_t argumentBytes) const;
  const CudaKernel &kernel(int64_t function) const {
    return kernels_[static_cast<size_t>(function)];
  }
  /// Threads of a block of the kernel.
  int threads(int64_t function) const {
    return code_.functions[function].block;
  }
  /// Bytes of shared memory that a launch gives a block.
  int64_t sharedBytes(int64_t function) const {
    return code_.functions[function].shared_bytes;
  }

private:
  explicit CudaCode(const dyna_device_code &code) : code_(code) {}

  const dyna_device_code &code_;
  std::unique_ptr<CudaModule> module_; ///< null where there are no kernels
  std::vector<CudaKernel> kernels_;
};

/// "sm_80, sm_90, PTX of sm_80"; "emulated"; "none".
std::string describeImages(const dyna_device_code &code);

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_DRIVER_CUDACODE_H
