//===- FileLock.h - One writer at a time ------------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A lock lies on an open descriptor and ends with it, however its process ends:
// there is no file that could stay behind and lock everybody out.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILELOCK_H
#define DYNA_RUNTIME_BASE_FILELOCK_H

#include <string>

namespace dyna {

/// Locks what `descriptor` has open until the descriptor is closed; false if
/// another one has it locked. File systems without locks give no protection.
bool lockDescriptor(int descriptor);

/// Who holds the lock, for messages: "process 123", or "a process that cannot
/// be seen from here" (of another machine or container).
std::string describeLockHolder(int descriptor);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILELOCK_H
