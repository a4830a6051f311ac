//===- CudnnPlan.h - Runs attention of one class by cuDNN -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNNPLAN_H
#define DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNNPLAN_H

#include "runtime/device/cuda/attention/AttentionClass.h"
#include "runtime/device/cuda/attention/Cudnn.h"
#include "runtime/device/cuda/driver/DriverApi.h"

namespace dyna::cuda {

/// Operands of a plan on the device, as in dyna_attention and
/// dyna_attention_grad. The last four are null without gradients.
struct AttentionTensors {
  const void *q, *k, *v;
  void *out, *lse;
  const int32_t *lengths; ///< [segments of the class]
  const int64_t *tables[gpu::kAttentionTables];
  const void *dout;
  void *dq, *dk, *dv;
};

/// Numbers of the tensors of a plan in cuDNN. Tables follow the last one.
enum CudnnTensor : int64_t {
  kCudnnQ = 1,
  kCudnnK,
  kCudnnV,
  kCudnnOut,
  kCudnnLse,
  kCudnnDout,
  kCudnnDq,
  kCudnnDk,
  kCudnnDv,
  kCudnnLengths,
  kCudnnTables
};

class CudnnPlan {
public:
  /// Makes a plan. cuDNN chooses an engine and compiles its kernels. This takes
  /// one or more seconds and does not wait for the device. Fails with
  /// InvalidArgument, and cuDNN's reason, if it has no plan.
  static StatusOr<std::unique_ptr<CudnnPlan>> make(const CudnnDevice &device,
                                                   const AttentionClass &shape);
  CudnnPlan(const CudnnPlan &) = delete;
  CudnnPlan &operator=(const CudnnPlan &) = delete;
  /// Unloads the kernels, none of which may still run.
  ~CudnnPlan();

  /// Returns the bytes of its workspace in device memory, aligned to 256.
  int64_t workspaceBytes() const { return workspaceBytes_; }
  /// Returns the name of the engine with its settings: "eng6_k24=26".
  const std::string &engine() const { return engine_; }

  /// Gives the work to a stream. The plan's device must be current. Fails with
  /// DeviceError and cuDNN's reason.
  Status run(const CudnnDevice &device, const AttentionTensors &tensors,
             void *workspace, StreamHandle stream);

private:
  CudnnPlan();
  struct State;
  std::unique_ptr<State> state_;
  int64_t workspaceBytes_ = 0;
  std::string engine_;
};

} // namespace dyna::cuda

#endif // DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNNPLAN_H
