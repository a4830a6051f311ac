//===- PlacedBlocks.h - Finds free offsets beside placed blocks -*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Time is cut into about sqrt(n) / 4 windows for n blocks, with a segment tree above
// them. A window knows the bytes of blocks that live during all of it. These merge with
// those beside them. So a short life is compared with these ranges and with the blocks
// that begin or end in its window, O(sqrt(n)) of them. A long life is compared with
// O(log n) sets of bytes, and added to at most as many windows as there are.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_PLANNER_PLACE_PLACEDBLOCKS_H
#define DYNA_RUNTIME_PLANNER_PLACE_PLACEDBLOCKS_H

#include "runtime/planner/place/BlockLifetime.h"

#include <cstddef>
#include <vector>

namespace dyna {

/// A set of bytes, as ordered ranges that do not touch each other.
class ByteRanges {
public:
  /// Adds the bytes from `begin` to `end`. O(log r) for r ranges, and the time to move
  /// those above.
  void add(int64_t begin, int64_t end);

  /// Returns the lowest offset from `offset` on that has `bytes` free bytes behind it.
  /// O(log r + g) if g gaps are too small.
  int64_t lowestFree(int64_t offset, int64_t bytes) const;

private:
  struct Range {
    int64_t begin, end;
  };
  std::vector<Range> ranges_;
};

/// Blocks that have their places.
class PlacedBlocks {
public:
  /// Prepares for the blocks of `order`.
  PlacedBlocks(const std::vector<BlockLifetime> &blocks,
               const std::vector<int> &order);

  /// Returns the lowest offset at which the block meets none of the others.
  int64_t lowest(const BlockLifetime &block);

  void add(const BlockLifetime &block, int64_t offset);

private:
  /// Positions among the times at which blocks begin. Of two lives that meet, one begins
  /// during the other, so that no other times matter.
  struct Life {
    int first, last;
  };
  struct Placed {
    int64_t begin, end;
    Life life;
  };
  struct Window {
    ByteRanges solid;           ///< of blocks that live during the whole window
    std::vector<Placed> others; ///< that live during a part of it, by begin
  };
  /// A node of the tree. Node i has the children 2 i and 2 i + 1.
  struct Node {
    ByteRanges
        covering; ///< of blocks for which the node is the largest one in their life
    ByteRanges any; ///< of all blocks that begin, end or live below the node
  };
  /// The windows of a life. Those from `inside` to `behind` lie in it as a whole.
  struct Windows {
    int first, last, inside, behind;
  };
  /// A window of which a block meets a part.
  struct Cursor {
    const Window *window;
    std::size_t at; ///< among the window's others
  };

  Life lifeOf(const BlockLifetime &block) const;
  Windows windowsOf(Life life) const;
  /// Returns an offset from `offset` on, below which nothing is free in the window.
  static int64_t lowestIn(Cursor &cursor, Life life, int64_t bytes,
                          int64_t offset);
  /// Calls `within` for the largest nodes that have only the windows from `begin` to
  /// `end`, and `around` for all nodes above these.
  template <typename Within, typename Around>
  void visit(int begin, int end, const Within &within, const Around &around);

  std::vector<int> firsts_;     ///< times at which blocks begin, in order
  int length_ = 1;              ///< positions of a window
  std::vector<Window> windows_; ///< their number is a power of two
  std::vector<Node> nodes_;
  std::vector<const ByteRanges *> met_; ///< by one block
};

} // namespace dyna

#endif // DYNA_RUNTIME_PLANNER_PLACE_PLACEDBLOCKS_H
