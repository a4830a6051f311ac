//===- ShareWork.cpp - Shares one job among all cores ---------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/base/thread/ShareWork.h"

#include "runtime/base/error/Guard.h"

#include <algorithm>
#include <vector>

void dyna::shareWork(int64_t pieces, const std::function<void()> &work) {
  const int64_t helpers = std::min<int64_t>(
      pieces, std::max(1u, std::thread::hardware_concurrency()));
  std::vector<std::thread> threads;
  threads.reserve(static_cast<size_t>(std::max<int64_t>(helpers, 0)));
  for (int64_t i = 1; i < helpers; ++i) {
    auto thread = startThread("shared work", work);
    if (!thread.isOk())
      break;
    threads.push_back(std::move(*thread));
  }
  work();
  for (std::thread &thread : threads)
    thread.join();
}
