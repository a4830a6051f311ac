//===- GpuConformanceTest.cpp - The CUDA backend on a GPU -----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// What runs on the stand-in everywhere, with the kernels' machine code. Without a
// driver and a device every test is skipped, and counted as such.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "test/runtime/device/DeviceConformance.h"

using namespace dyna;

std::vector<Backend> dyna::conformanceBackends() {
  auto make = []() -> StatusOr<std::unique_ptr<Device>> {
    CudaOptions options;
    options.threads = 1;
    auto device = CudaDevice::create(options);
    if (!device.isOk())
      return device.status();
    return std::unique_ptr<Device>(std::move(*device));
  };
  return {{"Gpu", make, dyna_matmul_f64, /*optional=*/true,
           /*readsSegments=*/false, /*finishes=*/false,
           /*describesEpilogues=*/true}};
}
