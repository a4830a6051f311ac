//===- OldCudnn.cpp - A cuDNN that is too old -------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include <cstddef>

extern "C" size_t cudnnGetVersion(void) { return 90701; }
