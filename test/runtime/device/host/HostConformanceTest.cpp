//===- HostConformanceTest.cpp - The host backend against the suites ------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every instruction set that this processor has, several team sizes, and both
// ways of multiplying bf16.
//
//===----------------------------------------------------------------------===//

#include "runtime/device/host/HostDevice.h"
#include "test/runtime/device/DeviceConformance.h"

using namespace dyna;

/// Stands for the product that the compiler generates.
static dyna_status matmulF64(dyna_context *, const dyna_matmul *p) {
  auto at = [](const void *matrix, int64_t i) {
    return static_cast<const double *>(matrix)[i];
  };
  for (int64_t i = 0; i < p->m; ++i)
    for (int64_t j = 0; j < p->n; ++j) {
      double &c = static_cast<double *>(p->c)[i * p->ldc + j];
      double sum = p->accumulate ? c : 0;
      for (int64_t l = 0; l < p->k; ++l)
        sum += at(p->a, p->transpose_a ? l * p->lda + i : i * p->lda + l) *
               at(p->b, p->transpose_b ? j * p->ldb + l : l * p->ldb + j);
      c = sum;
    }
  return DYNA_OK;
}

static Backend backend(const char *name, int threads, HostIsa isa,
                       Bf16Path path, bool optional = false) {
  HostOptions options;
  options.threads = threads;
  options.isa = isa;
  options.bf16 = path;
  return {name,
          [options]() -> StatusOr<std::unique_ptr<Device>> {
            auto device = HostDevice::create(options);
            if (!device.isOk())
              return device.status();
            return std::unique_ptr<Device>(std::move(*device));
          },
          matmulF64, optional};
}

std::vector<Backend> dyna::conformanceBackends() {
  return {
      backend("Best", 2, HostIsa::Best, Bf16Path::Auto),
      backend("Avx512Native3", 3, HostIsa::Avx512, Bf16Path::Native, true),
      backend("Avx2Widen1", 1, HostIsa::Avx2, Bf16Path::Widen, true),
      backend("Baseline2", 2, HostIsa::Baseline, Bf16Path::Widen),
  };
}
