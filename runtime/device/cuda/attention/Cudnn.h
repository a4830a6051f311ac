//===- Cudnn.h - cuDNN, opened at run time ----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The library is looked for as Library.h says; no binary is linked to it. Its
// graphs are made by NVIDIA's frontend, headers alone, which one source includes
// (CudnnPlan.cpp). Where it is compiled without them, opening fails.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNN_H
#define DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNN_H

#include "runtime/base/error/Status.h"
#include "runtime/device/cuda/driver/Library.h"

#include <memory>
#include <string>

namespace dyna::cuda {

/// Oldest version of the library that is taken, 10000 major + 100 minor + patch: the
/// first that describes devices.
inline constexpr int64_t kOldestCudnn = 90800;

struct Cudnn {
  Library library;
  int64_t version; ///< as kOldestCudnn is written

  /// Opens the library. Fails with InvalidArgument in one line: compiled without
  /// the frontend, no library, or one that is too old. The frontend knows one
  /// library per process: once one was opened, that is what comes.
  static StatusOr<Cudnn> open();

  std::string versionText() const; ///< "9.19.0"
};

/// A device as cuDNN sees it, for which plans are made.
class CudnnDevice {
public:
  /// Of the calling thread's current device, of the given capability. Plans that are
  /// made for it can run.
  static StatusOr<std::unique_ptr<CudnnDevice>> create(const Cudnn &cudnn,
                                                       int capability);
  /// Of a device that is not here: `properties` is what `properties` of it gave.
  /// No device and no driver is asked until plans are made.
  static StatusOr<std::unique_ptr<CudnnDevice>>
  createFrom(const Cudnn &cudnn, const std::string &properties, int capability);
  CudnnDevice(const CudnnDevice &) = delete;
  CudnnDevice &operator=(const CudnnDevice &) = delete;
  /// The device is current, and has no work of cuDNN's any more.
  ~CudnnDevice();

  /// JSON.
  StatusOr<std::string> properties() const;

  struct State; ///< of CudnnPlan.cpp
  State &state() const { return *state_; }

private:
  CudnnDevice();
  std::unique_ptr<State> state_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNN_H
