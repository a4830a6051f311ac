//===- PlaceBlocks.cpp - Offsets for blocks with lifetimes ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/place/PlaceBlocks.h"

#include <algorithm>
#include <numeric>
#include <tuple>

namespace dyna {
namespace {

/// `group` is ordered by start, and no time between its blocks is without one.
int64_t largestSum(const std::vector<BlockLifetime> &blocks,
                   const std::vector<int> &group) {
  const int begin = blocks[group[0]].first;
  int end = begin;
  for (int b : group)
    end = std::max(end, blocks[b].last + 1);
  std::vector<int64_t> changes(static_cast<size_t>(end - begin) + 1, 0);
  for (int b : group) {
    changes[static_cast<size_t>(blocks[b].first - begin)] += blocks[b].bytes;
    changes[static_cast<size_t>(blocks[b].last + 1 - begin)] -= blocks[b].bytes;
  }
  int64_t sum = 0, largest = 0;
  for (int64_t change : changes) {
    sum += change;
    largest = std::max(largest, sum);
  }
  return largest;
}

/// Groups of blocks whose lifetimes hang together.
std::vector<std::vector<int>>
connectedGroups(const std::vector<BlockLifetime> &blocks) {
  std::vector<int> order(blocks.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return std::make_pair(blocks[a].first, a) <
           std::make_pair(blocks[b].first, b);
  });
  std::vector<std::vector<int>> groups;
  int end = -1;
  for (int b : order) {
    if (groups.empty() || blocks[b].first > end)
      groups.emplace_back();
    groups.back().push_back(b);
    end = std::max(end, blocks[b].last);
  }
  return groups;
}

/// Blocks that have their places, in windows of time. A block is in each window that
/// its life meets, so that a short life is compared with few others. Blocks that live
/// as long as a window form its floor, as far as they leave no gap. Nothing else can lie
/// below the floor, so what is there is not looked at again.
class PlacedBlocks {
public:
  PlacedBlocks(const std::vector<BlockLifetime> &blocks,
               const std::vector<int> &order) {
    if (order.empty())
      return;
    int64_t lives = 0;
    begin_ = blocks[order[0]].first;
    for (int b : order) {
      begin_ = std::min(begin_, blocks[b].first);
      end_ = std::max<int64_t>(end_, blocks[b].last + 1);
      lives += blocks[b].last - blocks[b].first + 1;
    }
    // A block is in about three windows in the mean.
    const auto count = static_cast<int64_t>(order.size());
    length_ = static_cast<int>(std::max<int64_t>(1, lives / (2 * count)));
    windows_.resize(static_cast<size_t>((end_ - begin_ - 1) / length_ + 1));
  }

  /// Returns the lowest offset at which the block meets none of the others.
  int64_t lowest(const BlockLifetime &block) {
    if (block.bytes == 0)
      return 0;
    const int first = windowOf(block.first), last = windowOf(block.last);
    next_.assign(last - first + 1, 0);
    int64_t offset = 0;
    for (int w = first; w <= last; ++w)
      offset = std::max(offset, windows_[w].floor);
    // Blocks that a cursor has passed end below the offset or live at another
    // time. A higher offset may meet more blocks in windows that were already
    // visited.
    for (bool isRising = true; isRising;) {
      isRising = false;
      for (int w = first; w <= last; ++w) {
        const std::vector<Placed> &above = windows_[w].above;
        size_t &at = next_[w - first];
        for (; at < above.size() && above[at].begin < offset + block.bytes;
             ++at) {
          const Placed &other = above[at];
          if (other.last < block.first || other.first > block.last ||
              other.end <= offset)
            continue;
          offset = other.end;
          isRising = first != last;
        }
      }
    }
    return offset;
  }

  void add(const BlockLifetime &block, int64_t offset) {
    if (block.bytes == 0)
      return;
    const Placed mine{offset, offset + block.bytes, block.first, block.last};
    for (int w = windowOf(block.first); w <= windowOf(block.last); ++w) {
      Window &window = windows_[w];
      if (offset <= window.floor && fills(mine, w)) {
        raiseFloor(w, mine.end);
        continue;
      }
      window.above.insert(
          std::upper_bound(window.above.begin(), window.above.end(), mine,
                           [](const Placed &x, const Placed &y) {
                             return x.begin < y.begin;
                           }),
          mine);
    }
  }

private:
  struct Placed {
    int64_t begin, end;
    int first, last;
  };
  struct Window {
    int64_t floor = 0;
    std::vector<Placed> above; ///< by begin; each ends above the floor
  };

  /// Returns true if the block lives as long as the window.
  bool fills(const Placed &block, int window) const {
    const int64_t begin = begin_ + static_cast<int64_t>(window) * length_;
    return block.first <= begin &&
           block.last >= std::min(begin + length_, end_) - 1;
  }

  void raiseFloor(int number, int64_t to) {
    Window &window = windows_[number];
    window.floor = to;
    size_t met = 0;
    for (; met < window.above.size() && window.above[met].begin <= window.floor;
         ++met)
      if (fills(window.above[met], number))
        window.floor = std::max(window.floor, window.above[met].end);
    const auto end = window.above.begin() + static_cast<std::ptrdiff_t>(met);
    window.above.erase(std::remove_if(window.above.begin(), end,
                                      [&](const Placed &one) {
                                        return one.end <= window.floor;
                                      }),
                       end);
  }

  int windowOf(int time) const { return (time - begin_) / length_; }

  int begin_ = 0, length_ = 1;
  int64_t end_ = 0;
  std::vector<Window> windows_;
  std::vector<size_t> next_; ///< in the windows of one block
};

} // namespace

int64_t placeLowest(const std::vector<BlockLifetime> &blocks,
                    const std::vector<int> &order,
                    std::vector<int64_t> &offsets, int64_t limit) {
  PlacedBlocks placed(blocks, order);
  int64_t peak = 0;
  for (int b : order) {
    if (peak >= limit)
      break;
    offsets[b] = placed.lowest(blocks[b]);
    placed.add(blocks[b], offsets[b]);
    peak = std::max(peak, offsets[b] + blocks[b].bytes);
  }
  return peak;
}

BlockPlacement placeBlocks(const std::vector<BlockLifetime> &blocks) {
  BlockPlacement result;
  result.offsets.assign(blocks.size(), 0);
  auto bySize = [&](int a, int b) {
    return std::make_pair(-blocks[a].bytes, a) <
           std::make_pair(-blocks[b].bytes, b);
  };
  auto byLife = [&](int a, int b) {
    return std::make_tuple(blocks[a].first - blocks[a].last, blocks[a].first,
                           a) <
           std::make_tuple(blocks[b].first - blocks[b].last, blocks[b].first,
                           b);
  };
  for (std::vector<int> &group : connectedGroups(blocks)) {
    int64_t bound = largestSum(blocks, group);
    // By lifetime first: kept blocks form a stack at the bottom, and the brief
    // ones share the space above. `group` itself is ordered by start.
    std::vector<int> lifetimeOrder = group, sizeOrder = group;
    std::sort(lifetimeOrder.begin(), lifetimeOrder.end(), byLife);
    std::sort(sizeOrder.begin(), sizeOrder.end(), bySize);
    int64_t best = INT64_MAX;
    std::vector<int64_t> offsets(blocks.size(), 0);
    for (const std::vector<int> *order : {&lifetimeOrder, &sizeOrder, &group}) {
      int64_t peak = placeLowest(blocks, *order, offsets, best);
      if (peak < best) {
        best = peak;
        for (int b : group)
          result.offsets[b] = offsets[b];
      }
      if (best == bound)
        break;
    }
    result.peak = std::max(result.peak, best);
    result.lowerBound = std::max(result.lowerBound, bound);
  }
  return result;
}

} // namespace dyna
