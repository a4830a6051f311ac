//===- Bytes.h - Computes sizes from memory formulas ------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Turns the manifest's linear formulas into bytes, for the runtime, the planner and
// the compile-time reports.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_BYTES_H
#define DYNA_RUNTIME_PLAN_BYTES_H

#include "runtime/base/load/LinearBytes.h"
#include "runtime/plan/Manifest.pb.h"

#include <cstdint>

namespace dyna {

/// Limits of a micro-batch's tokens and of a formula's coefficients, below which no
/// product overflows.
constexpr int64_t maxMicroBatchTokens = INT64_C(1) << 24;
constexpr int64_t maxBytesPerRow = INT64_C(1) << 36;
constexpr int64_t maxConstantBytes = INT64_C(1) << 44;
/// Limit of a block's size. Sums of a hundred thousand such blocks do not overflow.
constexpr int64_t maxBlockBytes = INT64_C(1) << 46;

/// Limit of the bytes that a described function keeps of every pair.
constexpr int64_t maxBytesPerPair = INT64_C(1) << 12;

/// Returns the formula that a manifest has.
inline LinearBytes formulaOf(const plan::LinearBytes &formula) {
  return {formula.tq(), formula.tkv(), formula.s(), formula.constant()};
}

/// Returns the size of a block that follows `formula`, aligned. `load` is that of the
/// formula's stream.
inline int64_t linearBytes(const plan::LinearBytes &formula, const Load &load) {
  return dyna_align_block(formulaOf(formula).at(load));
}

/// Returns 0 for an unknown type.
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
