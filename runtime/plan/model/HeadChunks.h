//===- HeadChunks.h - Rows of a chunk of the head, by target ----*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_HEADCHUNKS_H
#define DYNA_RUNTIME_PLAN_HEADCHUNKS_H

#include "runtime/abi/Kernels.h"

#include <string_view>

namespace dyna {

/// Rows of the head whose logits exist at one time, in code compiled for `target`
/// (as the manifest names it). A GPU wants many: its product for the gradient of
/// the input has a tile for 128 rows and 128 features, which are to be more than
/// it has processors, and that of the weight reads and writes the whole gradient
/// once for each chunk.
constexpr int64_t headChunkRows(std::string_view target) {
  return target == "cuda" ? 4096 : DYNA_HEAD_CHUNK_ROWS;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_HEADCHUNKS_H
