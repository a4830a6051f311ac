//===- AttentionTables.cu - Fills cuDNN's tables ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/device/cuda/kernels/Gpu.h"

using namespace dyna;

/// Fills the tables of segments, with a thread per segment, and one for the
/// end.
DYNA_KERNEL(attention_tables) {
  const int64_t i =
      int64_t(gpu::blockIndex()) * gpu::blockSize() + gpu::threadIndex();
  if (i > args.filled)
    return;
  const bool isThere = i < args.count;
  const int64_t begin = isThere ? args.segments[i].q_begin : args.rows;
  for (int64_t table = 0; table < args.tables; ++table)
    args.offsets[table * args.pitch + i] = begin * args.strides[table];
  if (i < args.filled)
    args.lengths[i] =
        isThere ? static_cast<int32_t>(args.segments[i].q_len) : 0;
}
