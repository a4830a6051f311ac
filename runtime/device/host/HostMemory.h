//===- HostMemory.h - Measures how much memory is free ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_HOST_HOSTMEMORY_H
#define DYNA_RUNTIME_DEVICE_HOST_HOSTMEMORY_H

#include <cstdint>
#include <string>

namespace dyna {

/// Returns the bytes that can be allocated without swapping or being killed; -1
/// if unknown. That is the machine's available memory, limited by the control
/// groups of this process (version 1 and 2, nested ones too). Files that a
/// group has in the page cache count as free, because the kernel drops them
/// first. `root` is prepended to /proc and /sys, for tests.
int64_t availableMemory(const std::string &root = "");

/// Returns the bytes of memory that this process has now, its program and
/// libraries included; 0 if unknown. `root` as above.
int64_t residentMemory(const std::string &root = "");

/// Returns the bytes of addresses that the limits of this process (`ulimit -v`,
/// `ulimit -d`) leave, used or not; -1 if there is no limit. `root` as above;
/// limits are always this process's own.
int64_t availableAddresses(const std::string &root = "");

/// Returns the bytes of addresses of a thread, which are its stack.
int64_t addressesOfThread();

/// Prepares the C library for a process with a memory limit. Loads what it
/// would load on first use, and limits what it reserves for itself. Called
/// before the first thread starts.
void prepareForLimits();

} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_HOST_HOSTMEMORY_H
