//===- Packing.h - Intervals in time packed into memory -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Given blocks, each with a size and a span of time in which it is alive, find
// offsets such that blocks alive at one moment do not overlap, with a small
// highest end. (Dynamic storage allocation: NP-hard in general.)
//
//   time ->   0   1   2   3
//   a (4)     =======            a at 0, b at 4, c at 0: size 6,
//   b (2)         =======        which is the most ever alive: optimal
//   c (4)             ===
//
// Plain C++ so that it can be tested without IR.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PACKING_H
#define DYNA_PASSES_MEMORY_PACKING_H

#include <cstdint>
#include <vector>

namespace mlir::dyna {

struct PackItem {
  /// First and last moment of life, both included.
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size = 0;
  /// Must lie above everything that is alive with it: it is the beginning of a
  /// block that also has bytes of another kind, which follow it. Two such
  /// blocks are never alive together.
  bool onTop = false;
};

struct Packing {
  std::vector<int64_t> offsets; ///< one per item
  int64_t size = 0;             ///< the highest end
};

/// The most bytes alive at one moment: no packing is smaller. O(n log n).
int64_t maxLive(const std::vector<PackItem> &items);

/// Packs by best fit, largest first. If that misses the lower bound, looks on:
/// up to 7 items all orders of placing them, which finds the optimum; beyond,
/// moves blocks that stand at the top to the front of the order, at most 200
/// times, and less often of so many blocks that an order takes long. Always the
/// same result for the same items. An order takes time n log n, times how many
/// blocks are alive together.
Packing packItems(const std::vector<PackItem> &items);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_PACKING_H
