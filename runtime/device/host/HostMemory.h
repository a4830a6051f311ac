//===- HostMemory.h - How much memory can still be taken --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_HOSTMEMORY_H
#define DYNA_RUNTIME_DEVICE_HOST_HOSTMEMORY_H

#include <cstdint>
#include <string>

namespace dyna {

/// Bytes that can still be taken without swapping or being killed: the
/// machine's available memory, cut down to what the control groups of this
/// process leave (version 1 and 2, nested ones too). Files that a group holds
/// in the page cache count as free, for the kernel drops them first. -1:
/// unknown. `root` stands before /proc and /sys, for tests.
int64_t availableMemory(const std::string &root = "");

/// Bytes of memory that this process has by now, its program and libraries
/// included; 0: unknown. `root` as above.
int64_t residentMemory(const std::string &root = "");

/// Bytes of addresses that the limits of this process (`ulimit -v`, `ulimit
/// -d`) leave, whatever of them becomes memory; -1: there is no limit. `root`
/// as above, the limits are this process's own.
int64_t availableAddresses(const std::string &root = "");

/// Addresses of a thread: its stack.
int64_t addressesOfThread();

/// Makes ready for memory that may run out, where a limit says that it may:
/// what the C library looks up when it first needs it, and what it takes for
/// itself where there is much. Before the first thread.
void prepareForLimits();

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_HOSTMEMORY_H
