//===- Permutation.h - Shuffles by a seed, without memory -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A permutation of 0..n-1 as a function: a Feistel network over the next power
// of four, which is applied until the result is below n. Nothing is stored, so
// shuffling 10^9 documents costs nothing. The result is the same on every
// machine.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_DATA_PERMUTATION_H
#define DYNA_RUNTIME_DATA_PERMUTATION_H

#include "runtime/abi/Random.h"

#include <cstdint>

namespace dyna {

class Permutation {
public:
  /// Permutes 0..size-1; size > 0.
  Permutation(int64_t size, uint64_t key) : size_(size), key_(key) {
    while ((INT64_C(1) << (2 * halfBits_)) < size)
      ++halfBits_;
  }

  int64_t size() const { return size_; }

  /// Returns the value at `index`, 0 <= index < size. The network runs less
  /// than four times on average, as its domain is less than four times `size`.
  int64_t operator()(int64_t index) const {
    uint64_t value = static_cast<uint64_t>(index);
    do {
      value = encrypt(value);
    } while (value >= static_cast<uint64_t>(size_));
    return static_cast<int64_t>(value);
  }

private:
  // Small domains need this many rounds: with two bits a round function has
  // only four values.
  static constexpr int rounds = 8;

  uint64_t encrypt(uint64_t value) const {
    uint64_t mask = (UINT64_C(1) << halfBits_) - 1;
    uint64_t left = value >> halfBits_, right = value & mask;
    for (uint64_t round = 0; round < rounds; ++round) {
      uint64_t mixed = dyna_mix64(dyna_mix64(key_ ^ round) ^ right);
      uint64_t next = left ^ (mixed & mask);
      left = right;
      right = next;
    }
    return left << halfBits_ | right;
  }

  int64_t size_;
  uint64_t key_;
  int halfBits_ = 1;
};

} // namespace dyna

#endif // DYNA_RUNTIME_DATA_PERMUTATION_H
