//===- CpuFeatures.h - Detects features of this processor -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_EXECUTOR_OPEN_CPUFEATURES_H
#define DYNA_RUNTIME_EXECUTOR_OPEN_CPUFEATURES_H

#include <cstdint>
#include <string>

namespace dyna {

/// Returns the DYNA_FEATURE_* bits of this processor that the operating system
/// lets programs use. They are read from the processor, never from its name.
uint64_t cpuFeatures();

/// Formats features: "AVX2, AVX-512" or "none".
std::string featuresText(uint64_t features);

} // namespace dyna

#endif // DYNA_RUNTIME_EXECUTOR_OPEN_CPUFEATURES_H
