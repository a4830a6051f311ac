//===- LinearBytes.h - Sizes linear in tokens and segments ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// The form of every memory formula, from the places that the compiler chooses to
// the sizes that plans are made with. The manifest's message and the C struct of
// kernels hold the same four numbers where they are written down; `dyna_round_rows`
// and `dyna_align_block` (runtime/abi/Abi.h) are all that rounds.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_LINEARBYTES_H
#define DYNA_RUNTIME_BASE_LINEARBYTES_H

#include "runtime/abi/Abi.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace dyna {

/// What the size of a micro-batch's memory depends on: query tokens, key/value
/// tokens and segments.
struct Extent {
  int64_t tq = 0;
  int64_t tkv = 0;
  int64_t s = 0;
};

/// Bytes, linear in rounded query tokens, key/value tokens, segments and 1.
struct LinearBytes {
  int64_t tq = 0;
  int64_t tkv = 0;
  int64_t s = 0;
  int64_t constant = 0;

  LinearBytes operator+(const LinearBytes &other) const {
    return {tq + other.tq, tkv + other.tkv, s + other.s,
            constant + other.constant};
  }
  bool operator==(const LinearBytes &other) const {
    return tq == other.tq && tkv == other.tkv && s == other.s &&
           constant == other.constant;
  }
  bool operator!=(const LinearBytes &other) const { return !(*this == other); }
  /// Whether this is at most `other` for all tokens and segments.
  bool isAtMost(const LinearBytes &other) const {
    return tq <= other.tq && tkv <= other.tkv && s <= other.s &&
           constant <= other.constant;
  }
  /// The least linear function that is nowhere below either.
  LinearBytes upperBound(const LinearBytes &other) const {
    return {std::max(tq, other.tq), std::max(tkv, other.tkv),
            std::max(s, other.s), std::max(constant, other.constant)};
  }
  /// The bytes for these counts, each first rounded up as memory formulas have
  /// it; what 63 bits cannot count is the largest number that they can.
  int64_t at(const Extent &extent) const {
    auto sum = static_cast<__int128>(tq) * dyna_round_rows(extent.tq) +
               static_cast<__int128>(tkv) * dyna_round_rows(extent.tkv) +
               static_cast<__int128>(s) * dyna_round_rows(extent.s) + constant;
    return static_cast<int64_t>(
        std::min<__int128>(sum, std::numeric_limits<int64_t>::max()));
  }
  /// `1536*Tq + 64`, or `0`.
  std::string str() const;
};

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_LINEARBYTES_H
