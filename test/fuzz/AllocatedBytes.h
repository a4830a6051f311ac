//===- AllocatedBytes.h - Counts the memory of a fuzz target ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Replaces the allocation functions of the program by ones that count, those of the
// libraries that it links included. Sanitizers replace them too, so that nothing is
// counted in their builds.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_TEST_FUZZ_ALLOCATEDBYTES_H
#define DYNA_TEST_FUZZ_ALLOCATEDBYTES_H

#include <cstdint>

namespace dyna::test {

/// Starts a new peak at what is allocated now, and returns that.
int64_t beginPeak();
/// Returns the most bytes that were allocated at one time since.
int64_t peakBytes();

} // namespace dyna::test

#endif // DYNA_TEST_FUZZ_ALLOCATEDBYTES_H
