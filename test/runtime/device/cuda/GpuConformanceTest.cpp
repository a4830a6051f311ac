//===- GpuConformanceTest.cpp - The CUDA backend on a GPU -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What runs on the stand-in everywhere, with the kernels' machine code; and once more
// with attention by cuDNN where it has plans, gradients in a fixed order and in any.
// Without a driver and a device every test is skipped, and counted as such.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "test/runtime/device/DeviceConformance.h"

using namespace dyna;

static Backend makeBackend(const char *name,
                           const cuda::AttentionOptions &attention) {
  auto make = [attention]() -> StatusOr<std::unique_ptr<Device>> {
    CudaOptions options;
    options.threads = 1;
    options.attention = attention;
    DYNA_ASSIGN_OR_RETURN(auto device, CudaDevice::create(options));
    // Without cuDNN it would be the first backend again.
    if (attention.useLibrary && !device->attention().whyNot().empty())
      return Status::invalidArgument(device->attention().whyNot());
    return std::unique_ptr<Device>(std::move(device));
  };
  return {name,
          make,
          dyna_matmul_f64,
          /*optional=*/true,
          /*readsSegments=*/false,
          /*finishes=*/false,
          /*describesEpilogues=*/true};
}

std::vector<Backend> dyna::conformanceBackends() {
  cuda::AttentionOptions own, ordered, anyOrder;
  ordered.useLibrary = anyOrder.useLibrary = true;
  anyOrder.isOrdered = false;
  return {makeBackend("Gpu", own), makeBackend("GpuCudnn", ordered),
          makeBackend("GpuCudnnAnyOrder", anyOrder)};
}
