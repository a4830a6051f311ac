//===- CudaConformanceTest.cpp - The CUDA backend against the suite -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On the driver's stand-in, whose streams run in the order of several seeds.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/Library.h"
#include "test/runtime/device/DeviceConformance.h"

#include <cstdlib>

using namespace dyna;

std::vector<Backend> dyna::conformanceBackends() {
  std::vector<Backend> backends;
  for (int seed = 0; seed < DYNA_STANDIN_SEEDS; ++seed) {
    std::string text = std::to_string(seed);
    auto make = [text]() -> StatusOr<std::unique_ptr<Device>> {
      setenv(cuda::kLibraryPathVariable, DYNA_STANDINS "/cuda", 1);
      setenv("DYNA_STANDIN_SEED", text.c_str(), 1);
      CudaOptions options;
      options.threads = 1;
      auto device = CudaDevice::create(options);
      if (!device.isOk())
        return device.status();
      return std::unique_ptr<Device>(std::move(*device));
    };
    backends.push_back({"Seed" + text, make, nullptr, /*optional=*/false,
                        /*readsSegments=*/false});
  }
  return backends;
}
