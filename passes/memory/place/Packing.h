//===- Packing.h - Packs blocks with lifetimes into memory ------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Input: blocks, each with a size and a span of time in which it is alive.
// Output: offsets such that blocks that are alive together do not overlap, with
// a highest end that is as low as possible. (Dynamic storage allocation:
// NP-hard in general.)
//
//     time ->   0   1   2   3
//     a (4)     =======            a at 0, b at 4, c at 0: size 6,
//     b (2)         =======        which is the most ever alive: optimal
//     c (4)             ===
//
// This is plain C++, so that it can be tested without IR.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_PLACE_PACKING_H
#define DYNA_PASSES_MEMORY_PLACE_PACKING_H

#include <cstdint>
#include <vector>

namespace mlir::dyna {

struct PackItem {
  /// First and last moment of life, both included.
  int64_t begin = 0;
  int64_t end = 0;
  int64_t size = 0;
  /// The item must lie above everything that is alive with it. It is the
  /// beginning of a block that continues with bytes of another kind. Two such
  /// blocks are never alive together.
  bool onTop = false;
};

struct Packing {
  std::vector<int64_t> offsets; ///< one per item
  int64_t size = 0;             ///< the highest end
};

/// Returns the most bytes alive at one moment, a lower bound of any packing.
/// O(n log n).
int64_t maxLive(const std::vector<PackItem> &items);

/// Packs by best fit, largest first. If the result misses the lower bound, the
/// search goes on:
///
/// - Up to 7 items it tries all orders, which finds the optimum.
/// - With more items it moves the blocks at the top to the front of the order.
///   It does so at most 200 times, and less often if there are so many blocks
///   that an order takes long.
///
/// The result is the same each time. An order takes O(n log n), times the
/// number of blocks that are alive together.
Packing packItems(const std::vector<PackItem> &items);

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_PLACE_PACKING_H
