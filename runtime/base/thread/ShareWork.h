//===- ShareWork.h - Shares one job among all cores -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_THREAD_SHAREWORK_H
#define DYNA_RUNTIME_BASE_THREAD_SHAREWORK_H

#include <cstdint>
#include <functional>

namespace dyna {

/// Calls `work` here and in other threads, and returns when all calls have. The
/// number of calls is at most that of the cores, and at most `pieces`. Each
/// call must take pieces until none is left, and must not throw. If the system
/// has no more threads, fewer do the same work.
void shareWork(int64_t pieces, const std::function<void()> &work);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_THREAD_SHAREWORK_H
