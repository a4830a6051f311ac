//===- LinearBytes.h - Computes sizes linear in tokens --------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every memory formula has this form: the places that the compiler chooses, and the
// sizes that the planner computes. The manifest's message and the C struct of kernels
// have the same four numbers. Only `dyna_round_rows` and `dyna_align_block`
// (runtime/abi/Abi.h) round.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_BASE_LOAD_LINEARBYTES_H
#define DYNA_RUNTIME_BASE_LOAD_LINEARBYTES_H

#include "runtime/abi/Abi.h"
#include "runtime/base/load/Load.h"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>

namespace dyna {

/// Bytes, linear in the queries, the keys and the segments of one stream. Each of the
/// three counts is one *row class*: a coefficient is the bytes of a row of its class.
struct LinearBytes {
  int64_t tq = 0;  ///< of each query
  int64_t tkv = 0; ///< of each key
  int64_t s = 0;   ///< of each segment
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
  /// Returns true if this is at most `other` for every load.
  bool isAtMost(const LinearBytes &other) const {
    return tq <= other.tq && tkv <= other.tkv && s <= other.s &&
           constant <= other.constant;
  }
  /// Returns the least linear function that is at least both.
  LinearBytes upperBound(const LinearBytes &other) const {
    return {std::max(tq, other.tq), std::max(tkv, other.tkv),
            std::max(s, other.s), std::max(constant, other.constant)};
  }
  /// Returns the bytes for a load. Its counts are first rounded up, as in all
  /// memory formulas. A sum that does not fit into 63 bits becomes the largest
  /// number that does.
  int64_t at(const Load &load) const {
    auto sum = static_cast<__int128>(tq) * dyna_round_rows(load.queries) +
               static_cast<__int128>(tkv) * dyna_round_rows(load.keys) +
               static_cast<__int128>(s) * dyna_round_rows(load.segments) +
               constant;
    return static_cast<int64_t>(
        std::min<__int128>(sum, std::numeric_limits<int64_t>::max()));
  }
  /// Returns the bytes of a load's rows as they are sent: not rounded, and
  /// without the constant.
  int64_t ofRows(const Load &load) const {
    return tq * load.queries + tkv * load.keys + s * load.segments;
  }
  /// Returns `1536*Tq + 64`, or `0`.
  std::string str() const;
};

} // namespace dyna

#endif // DYNA_RUNTIME_BASE_LOAD_LINEARBYTES_H
