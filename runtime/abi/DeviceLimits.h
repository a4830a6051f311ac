//===- DeviceLimits.h - What a device's kernels take, at most -----*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// For the compiler, which refuses the rest, and for the kernels of all devices.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_DEVICELIMITS_H
#define DYNA_RUNTIME_ABI_DEVICELIMITS_H

/// Elements of a head, in attention on CUDA devices.
enum { DYNA_CUDA_HEAD_DIM = 256 };

/// The largest norm, clipped, of a gradient that is applied: the squares of its
/// elements, which AdamW keeps in f32, are finite up to 1.8e19.
#define DYNA_LARGEST_NORM 1e19

#endif // DYNA_RUNTIME_ABI_DEVICELIMITS_H
