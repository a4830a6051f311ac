//===- FileLock.h - Allows one writer at a time -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A lock lies on an open descriptor. It ends with the descriptor, however the
// process ends. So no lock file can stay behind and block later runs.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_FILE_FILELOCK_H
#define DYNA_RUNTIME_BASE_FILE_FILELOCK_H

#include <string>

namespace dyna {

/// Locks the file of `descriptor` until the descriptor is closed; returns false
/// if another descriptor has it locked. File systems without locks give no
/// protection.
bool lockDescriptor(int descriptor);

/// Names the holder of the lock, for messages: "process 123", or "a process
/// that cannot be seen from here" (on another machine or in another container).
std::string describeLockHolder(int descriptor);

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_FILE_FILELOCK_H
