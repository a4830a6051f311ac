//===- Bytes.h - Sizes of memory formulas -----------------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// How the runtime, the planner and the compile-time reports turn the manifest's
// linear formulas into bytes.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLAN_BYTES_H
#define DYNA_RUNTIME_PLAN_BYTES_H

#include "runtime/base/LinearBytes.h"
#include "runtime/plan/Manifest.pb.h"

#include <cstdint>

namespace dyna {

/// No micro-batch has more tokens than this, no formula larger coefficients: so
/// that no product overflows.
constexpr int64_t maxMicroBatchTokens = INT64_C(1) << 24;
constexpr int64_t maxBytesPerRow = INT64_C(1) << 36;
constexpr int64_t maxConstantBytes = INT64_C(1) << 44;
/// No block is larger; sums of a hundred thousand blocks do not overflow.
constexpr int64_t maxBlockBytes = INT64_C(1) << 46;

/// Described functions may also keep something of every pair.
constexpr int64_t maxBytesPerPair = INT64_C(1) << 12;

/// What the memory of a micro-batch depends on: counts that compiled functions go
/// by, and for described ones (LayerKind.score_bytes_per_pair) the pairs of a query
/// and a key of one segment, visible or not.
struct BatchExtent : Extent {
  BatchExtent() = default;
  BatchExtent(const Extent &counts, int64_t pairs = 0)
      : Extent(counts), pairs(pairs) {}

  int64_t pairs = 0;
};

/// The size of a block that follows `formula`, aligned.
inline int64_t linearBytes(const plan::LinearBytes &formula,
                           const Extent &extent) {
  return dyna_align_block(
      LinearBytes{formula.tq(), formula.tkv(), formula.s(), formula.constant()}
          .at(extent));
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
