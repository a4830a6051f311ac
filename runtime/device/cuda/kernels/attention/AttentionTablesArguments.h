//===- AttentionTablesArguments.h - Where segments begin --------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONTABLESARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONTABLESARGUMENTS_H

#include "runtime/abi/Abi.h"

namespace dyna {
namespace gpu {

/// Tensors with rows of their own strides; dout has that of out.
enum AttentionTable {
  kTableQ,
  kTableK,
  kTableV,
  kTableOut,
  kTableLse,
  kAttentionForwardTables,
  kTableDq = kAttentionForwardTables,
  kTableDk,
  kTableDv,
  kAttentionTables
};

/// What cuDNN is told of segments: tokens of each (int32), and for each tensor the
/// element at which each begins and, behind the last, the one at which all end
/// (int64). Segments from `count` on are empty ones behind the rows.
struct AttentionTablesArguments {
  const dyna_segment *segments;
  int64_t count;
  int64_t filled; ///< segments with the empty ones
  int64_t rows;
  int32_t *lengths; ///< [filled]
  int64_t *offsets; ///< [tables][pitch], of which filled + 1 are written
  int64_t pitch;
  int64_t tables;
  int64_t strides[kAttentionTables];
};

constexpr int kTablesThreads = 128;

} // namespace gpu
} // namespace dyna

#endif // DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONTABLESARGUMENTS_H
