//===- DeviceLimits.h - What a device's kernels take, at most -----*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For the compiler, which refuses the rest, and for the kernels.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_DEVICELIMITS_H
#define DYNA_RUNTIME_ABI_DEVICELIMITS_H

/// Elements of a head, in attention on CUDA devices.
enum { DYNA_CUDA_HEAD_DIM = 256 };

#endif // DYNA_RUNTIME_ABI_DEVICELIMITS_H
