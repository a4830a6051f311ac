//===- DeviceLimits.h - Defines limits of the kernels of devices --*- C -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The compiler refuses what exceeds these limits. The kernels of all devices
// rely on them.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_ABI_DEVICELIMITS_H
#define DYNA_RUNTIME_ABI_DEVICELIMITS_H

/// Largest number of elements of an attention head on CUDA devices.
enum { DYNA_CUDA_HEAD_DIM = 256 };

/// Largest norm, after clipping, of a gradient that is applied. AdamW keeps the
/// squares of its elements in f32; they are finite up to 1.8e19.
#define DYNA_LARGEST_NORM 1e19

#endif // DYNA_RUNTIME_ABI_DEVICELIMITS_H
