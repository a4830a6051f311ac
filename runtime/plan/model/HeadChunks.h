//===- HeadChunks.h - Chooses the chunk of the head by target ---*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_HEADCHUNKS_H
#define DYNA_RUNTIME_PLAN_HEADCHUNKS_H

#include "runtime/abi/Kernels.h"

#include <string_view>

namespace dyna {

/// Returns the rows of the head whose logits exist at one time, in code
/// compiled for `target` (the manifest's name). A GPU needs many rows. Its
/// product for the input's gradient has one tile per 128 rows and 128 features,
/// and there must be more tiles than processors. The product for the weight's
/// gradient reads and writes the whole gradient once per chunk.
constexpr int64_t headChunkRows(std::string_view target) {
  return target == "cuda" ? 4096 : DYNA_HEAD_CHUNK_ROWS;
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_HEADCHUNKS_H
