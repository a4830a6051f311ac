//===- CoreTime.cpp - Measures the time that a thread had a core ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/thread/CoreTime.h"

#include <cstdio>
#include <ctime>
#include <memory>

namespace dyna {

double coreSeconds() {
  timespec time{};
  if (clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time) != 0)
    return 0;
  return static_cast<double>(time.tv_sec) +
         1e-9 * static_cast<double>(time.tv_nsec);
}

double coreWaitSeconds() {
  struct Closer {
    void operator()(std::FILE *file) const { std::fclose(file); }
  };
  // Linux reports nanoseconds on a core, nanoseconds in its queue, and turns.
  std::unique_ptr<std::FILE, Closer> file(
      std::fopen("/proc/thread-self/schedstat", "re"));
  unsigned long long ran = 0, waited = 0;
  if (!file || std::fscanf(file.get(), "%llu %llu", &ran, &waited) != 2)
    return 0;
  return 1e-9 * static_cast<double>(waited);
}

} // namespace dyna
