//===- TokenPartBytes.h - Computes bytes of a rank's part of tokens -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_LOAD_TOKENPARTBYTES_H
#define DYNA_RUNTIME_BASE_LOAD_TOKENPARTBYTES_H

#include "runtime/abi/Abi.h"

namespace dyna {

/// Returns the bytes per token of a tensor with `rowBytes` per token, on one of
/// `ranks` ranks. Each rank has an equal part of every DYNA_ROW_ALIGNMENT
/// tokens, rounded up. For that many tokens the result is a multiple of
/// DYNA_BLOCK_ALIGNMENT.
inline int64_t tokenPartBytes(int64_t rowBytes, int64_t ranks) {
  constexpr int64_t unit = DYNA_BLOCK_ALIGNMENT / DYNA_ROW_ALIGNMENT;
  const int64_t rows = (DYNA_ROW_ALIGNMENT + ranks - 1) / ranks;
  const int64_t bytes =
      (rowBytes * rows + DYNA_ROW_ALIGNMENT - 1) / DYNA_ROW_ALIGNMENT;
  return (bytes + unit - 1) / unit * unit;
}

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_LOAD_TOKENPARTBYTES_H
