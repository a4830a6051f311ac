//===- Cudnn.h - Opens cuDNN at run time ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Library.h describes how the library is found; no binary is linked to it.
// NVIDIA's frontend makes its graphs. It has headers alone, which one source
// includes (CudnnPlan.cpp). If Dyna was compiled without them, opening fails.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNN_H
#define DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNN_H

#include "runtime/base/error/Status.h"
#include "runtime/device/cuda/driver/Library.h"

#include <memory>
#include <string>

namespace dyna::cuda {

/// Oldest supported version of the library, as 10000 major + 100 minor + patch.
/// It is the first that describes devices.
inline constexpr int64_t kOldestCudnn = 90800;

struct Cudnn {
  Library library;
  int64_t version; ///< in the form of kOldestCudnn

  /// Opens the library. Fails with InvalidArgument, in one line, without the
  /// frontend or the library, or if the library is too old. The frontend
  /// supports one library per process: after the first call, that one is
  /// returned.
  static StatusOr<Cudnn> open();

  std::string versionText() const; ///< "9.19.0"
};

/// cuDNN's description of a device, for which plans are made.
class CudnnDevice {
public:
  /// Describes the calling thread's current device, of the given capability.
  /// Plans that are made for it can run.
  static StatusOr<std::unique_ptr<CudnnDevice>> create(const Cudnn &cudnn,
                                                       int capability);
  /// Describes a device that is not present; `properties` is the result of
  /// `properties` on it. Needs no device and no driver until plans are made.
  static StatusOr<std::unique_ptr<CudnnDevice>>
  createFrom(const Cudnn &cudnn, const std::string &properties, int capability);
  CudnnDevice(const CudnnDevice &) = delete;
  CudnnDevice &operator=(const CudnnDevice &) = delete;
  /// Destroys the description. The device must be current, and have no work of
  /// cuDNN.
  ~CudnnDevice();

  /// Returns the description as JSON.
  StatusOr<std::string> properties() const;

  struct State; ///< of CudnnPlan.cpp
  State &state() const { return *state_; }

private:
  CudnnDevice();
  std::unique_ptr<State> state_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNN_H
