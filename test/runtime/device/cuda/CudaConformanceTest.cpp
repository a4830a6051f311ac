//===- CudaConformanceTest.cpp - The CUDA backend against the suite -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// On the driver's stand-in, whose streams run in the order of several seeds.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/CudaDevice.h"
#include "runtime/device/cuda/driver/Library.h"
#include "test/runtime/device/DeviceConformance.h"

#include <cstdlib>
#include <dlfcn.h>

using namespace dyna;

/// As the end of the process would.
static void forgetDevices() {
  void *library = dlopen(DYNA_STANDINS "/cuda/libcuda.so.1", RTLD_NOW);
  void *reset = library ? dlsym(library, "dyna_standin_reset") : nullptr;
  if (reset)
    reinterpret_cast<void (*)()>(reset)();
}

static Backend makeBackend(const std::string &name, int seed,
                           const cuda::ProductOptions &products = {}) {
  auto make = [seed, products]() -> StatusOr<std::unique_ptr<Device>> {
    setenv(cuda::kLibraryPathVariable, DYNA_STANDINS "/cuda", 1);
    setenv("DYNA_STANDIN_SEED", std::to_string(seed).c_str(), 1);
    CudaOptions options;
    options.threads = 1;
    options.products = products;
    auto device = CudaDevice::create(options);
    if (!device.isOk()) {
      // An earlier test has ended the use of the device.
      forgetDevices();
      device = CudaDevice::create(options);
    }
    if (!device.isOk())
      return device.status();
    return std::unique_ptr<Device>(std::move(*device));
  };
  return {name,
          make,
          dyna_matmul_f64,
          /*optional=*/false,
          /*readsSegments=*/false,
          /*finishes=*/false,
          /*describesEpilogues=*/true};
}

std::vector<Backend> dyna::conformanceBackends() {
  std::vector<Backend> backends;
  for (int seed = 0; seed < DYNA_STANDIN_SEEDS; ++seed) {
    std::string text = std::to_string(seed);
    backends.push_back(makeBackend("Seed" + text, seed));
#ifdef DYNA_STANDIN_OWN_PRODUCTS
    cuda::ProductOptions own;
    own.useLibrary = false;
    backends.push_back(makeBackend("OwnProductsSeed" + text, seed, own));
#endif
  }
  return backends;
}
