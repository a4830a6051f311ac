//===- CudnnMissing.cpp - Replaces CudnnPlan.cpp ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces CudnnPlan.cpp without NVIDIA's frontend. Cudnn::open fails here, so
// no other function is ever called.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/attention/CudnnPlan.h"

using namespace dyna;
using namespace dyna::cuda;

struct CudnnDevice::State {};
struct CudnnPlan::State {};
CudnnDevice::CudnnDevice() = default;
CudnnDevice::~CudnnDevice() = default;
CudnnPlan::CudnnPlan() = default;
CudnnPlan::~CudnnPlan() = default;

static Status missing() { return Cudnn::open().status(); }

StatusOr<std::unique_ptr<CudnnDevice>> CudnnDevice::create(const Cudnn &, int) {
  return missing();
}
StatusOr<std::unique_ptr<CudnnDevice>>
CudnnDevice::createFrom(const Cudnn &, const std::string &, int) {
  return missing();
}
StatusOr<std::string> CudnnDevice::properties() const { return missing(); }
StatusOr<std::unique_ptr<CudnnPlan>> CudnnPlan::make(const CudnnDevice &,
                                                     const AttentionClass &) {
  return missing();
}
Status CudnnPlan::run(const CudnnDevice &, const AttentionTensors &, void *,
                      StreamHandle) {
  return missing();
}
