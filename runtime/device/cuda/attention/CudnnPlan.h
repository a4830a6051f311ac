//===- CudnnPlan.h - Attention of one class by cuDNN ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNNPLAN_H
#define DYNA_RUNTIME_DEVICE_CUDA_ATTENTION_CUDNNPLAN_H

#include "runtime/device/cuda/attention/AttentionClass.h"
#include "runtime/device/cuda/attention/Cudnn.h"
#include "runtime/device/cuda/driver/DriverApi.h"

namespace dyna::cuda {

/// What a plan reads and writes on the device, as dyna_attention and
/// dyna_attention_grad say; the last four are null without gradients.
struct AttentionTensors {
  const void *q, *k, *v;
  void *out, *lse;
  const int32_t *lengths; ///< [segments of the class]
  const int64_t *tables[gpu::kAttentionTables];
  const void *dout;
  void *dq, *dk, *dv;
};

/// By which cuDNN knows the tensors of a plan: tables follow the last one.
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
  /// Describes the class to cuDNN, which chooses an engine and compiles its kernels:
  /// a second or several, without waiting for the device. InvalidArgument, with
  /// cuDNN's reason, where it has no plan.
  static StatusOr<std::unique_ptr<CudnnPlan>> make(const CudnnDevice &device,
                                                   const AttentionClass &shape);
  CudnnPlan(const CudnnPlan &) = delete;
  CudnnPlan &operator=(const CudnnPlan &) = delete;
  /// Unloads kernels: none of them runs any more.
  ~CudnnPlan();

  /// Bytes of device memory, aligned to 256, that it works in.
  int64_t workspaceBytes() const { return workspaceBytes_; }
  /// Of the engine, with what was chosen of it: "eng6_k24=26".
  const std::string &engine() const { return engine_; }

  /// Gives the work to a stream of the device that the plan was made for, which is
  /// current. DeviceError with cuDNN's reason.
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
