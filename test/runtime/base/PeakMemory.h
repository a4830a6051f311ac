//===- PeakMemory.h - Memory that a call takes ------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_RUNTIME_BASE_PEAKMEMORY_H
#define DYNA_TEST_RUNTIME_BASE_PEAKMEMORY_H

#include <cstdint>
#include <fstream>
#include <string>

namespace dyna::test {

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
inline constexpr bool measuresMemory = false;
#elif defined(__has_feature)
inline constexpr bool measuresMemory =
    !__has_feature(address_sanitizer) && !__has_feature(thread_sanitizer);
#else
inline constexpr bool measuresMemory = true;
#endif

/// A row of /proc/self/status, in bytes.
inline int64_t statusBytes(const std::string &name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name + ":", 0) == 0)
      return std::stoll(line.substr(name.size() + 1)) << 10;
  return -1;
}

/// Bytes that a call touches beyond what the process had before it. Not under
/// sanitizers, which take memory of their own (`measuresMemory`).
template <typename Call> int64_t peakBytes(Call call) {
  std::ofstream("/proc/self/clear_refs") << "5"; // the peak begins anew
  const int64_t before = statusBytes("VmRSS");
  call();
  return statusBytes("VmHWM") - before;
}

} // namespace dyna::test

#endif // DYNA_TEST_RUNTIME_BASE_PEAKMEMORY_H
