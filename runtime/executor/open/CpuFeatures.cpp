//===- CpuFeatures.cpp - Detects features of this processor ---------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/executor/open/CpuFeatures.h"

#include "runtime/abi/Abi.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif

namespace dyna {

uint64_t cpuFeatures() {
  uint64_t features = 0;
#if defined(__x86_64__)
  unsigned eax = 0, ebx = 0, ecx = 0, edx = 0;
  bool f16c = __get_cpuid(1, &eax, &ebx, &ecx, &edx) && (ecx & (1u << 29));
  // The compiler's test includes whether the system saves the registers.
  __builtin_cpu_init();
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") &&
      __builtin_cpu_supports("bmi2") && f16c)
    features |= DYNA_FEATURE_AVX2;
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512cd") &&
      __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl"))
    features |= DYNA_FEATURE_AVX512;
#endif
  return features;
}

std::string featuresText(uint64_t features) {
  std::string text;
  auto add = [&](uint64_t bit, const char *name) {
    if (features & bit)
      text += (text.empty() ? "" : ", ") + std::string(name);
  };
  add(DYNA_FEATURE_AVX2, "AVX2");
  add(DYNA_FEATURE_AVX512, "AVX-512");
  return text.empty() ? "none" : text;
}

} // namespace dyna
