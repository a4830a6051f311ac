//===- Bytes.h - Sizes of memory formulas -----------------------*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//
//
// How the runtime, the planner and the compile-time reports turn the manifest's
// linear formulas into bytes. There is no other place that rounds.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_BYTES_H
#define DYNA_RUNTIME_PLAN_BYTES_H

#include "runtime/abi/Abi.h"
#include "runtime/plan/Manifest.pb.h"

#include <cstdint>

namespace dyna {

/// What the size of a micro-batch's memory depends on: query tokens, key/value
/// tokens and segments.
struct Extent {
  int64_t tq = 0;
  int64_t tkv = 0;
  int64_t s = 0;
};

/// No micro-batch has more tokens than this, no formula larger coefficients: so
/// that no product overflows.
constexpr int64_t maxMicroBatchTokens = INT64_C(1) << 24;
constexpr int64_t maxBytesPerRow = INT64_C(1) << 36;
constexpr int64_t maxConstantBytes = INT64_C(1) << 44;
/// No block is larger; sums of a hundred thousand blocks do not overflow.
constexpr int64_t maxBlockBytes = INT64_C(1) << 46;

inline int64_t alignToBlock(int64_t bytes) {
  return (bytes + DYNA_BLOCK_ALIGNMENT - 1) / DYNA_BLOCK_ALIGNMENT *
         DYNA_BLOCK_ALIGNMENT;
}

inline int64_t roundRows(int64_t rows) {
  return (rows + DYNA_ROW_ALIGNMENT - 1) / DYNA_ROW_ALIGNMENT *
         DYNA_ROW_ALIGNMENT;
}

/// The size of a block that follows `formula`, aligned.
inline int64_t linearBytes(const plan::LinearBytes &formula,
                           const Extent &extent) {
  return alignToBlock(formula.tq() * roundRows(extent.tq) +
                      formula.tkv() * roundRows(extent.tkv) +
                      formula.s() * roundRows(extent.s) + formula.constant());
}

/// 0 for a type that is not known.
inline int64_t elementBytes(plan::ElementType type) {
  switch (type) {
  case plan::F64:
    return 8;
  case plan::F32:
  case plan::I32:
    return 4;
  case plan::BF16:
    return 2;
  default:
    return 0;
  }
}

} // namespace dyna

#endif // DYNA_RUNTIME_PLAN_BYTES_H
