//===- ShareWork.h - One job, done by all cores -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_SHAREWORK_H
#define DYNA_RUNTIME_BASE_SHAREWORK_H

#include <cstdint>
#include <functional>

namespace dyna {

/// Calls `work` here and in other threads, of all together at most one for each
/// core and each of `pieces`; back when all calls are. Each call takes pieces, of
/// what it knows, until none is left, and throws nothing. Where the system has no
/// more threads, fewer do the same work.
void shareWork(int64_t pieces, const std::function<void()> &work);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_SHAREWORK_H
