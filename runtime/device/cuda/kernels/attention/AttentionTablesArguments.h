//===- AttentionTablesArguments.h - Tables of segments ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONTABLESARGUMENTS_H
#define DYNA_RUNTIME_DEVICE_CUDA_KERNELS_ATTENTIONTABLESARGUMENTS_H

#include "runtime/abi/Abi.h"

namespace dyna {
namespace gpu {

/// Tensors with rows of their own strides; dout has the same table as out.
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

/// Tables of segments for cuDNN. They are the tokens of each segment (int32),
/// and for each tensor the first element of each segment (int64). The last
/// entry is the end of all. Segments from `count` on are empty and come after
/// the rows.
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
