//===- PlaceBlocks.cpp - Offsets for blocks with lifetimes ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/place/PlaceBlocks.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <tuple>

namespace dyna {
namespace {

int64_t largestSum(const std::vector<BlockLifetime> &blocks,
                   const std::vector<int> &group) {
  std::map<int, int64_t> changes;
  for (int b : group) {
    changes[blocks[b].first] += blocks[b].bytes;
    changes[blocks[b].last + 1] -= blocks[b].bytes;
  }
  int64_t sum = 0, largest = 0;
  for (const auto &[time, change] : changes) {
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
/// its life meets, so that a short life is compared with few others.
class PlacedBlocks {
public:
  PlacedBlocks(const std::vector<BlockLifetime> &blocks,
               const std::vector<int> &order) {
    if (order.empty())
      return;
    int end = 0;
    int64_t lives = 0;
    begin_ = blocks[order[0]].first;
    for (int b : order) {
      begin_ = std::min(begin_, blocks[b].first);
      end = std::max(end, blocks[b].last + 1);
      lives += blocks[b].last - blocks[b].first + 1;
    }
    // A block is in about three windows in the mean.
    const auto count = static_cast<int64_t>(order.size());
    length_ = static_cast<int>(std::max<int64_t>(1, lives / (2 * count)));
    windows_.resize((end - begin_ - 1) / length_ + 1);
  }

  /// Returns the lowest offset at which the block meets none of the others.
  int64_t lowest(const BlockLifetime &block) {
    const int first = windowOf(block.first), last = windowOf(block.last);
    next_.assign(last - first + 1, 0);
    int64_t offset = 0;
    // What is behind a cursor ends below the offset, or lives at another time. An
    // offset that rises may meet more in windows that were looked at before.
    for (bool isRising = true; isRising;) {
      isRising = false;
      for (int w = first; w <= last; ++w) {
        const std::vector<Placed> &window = windows_[w];
        size_t &at = next_[w - first];
        for (; at < window.size() && window[at].begin < offset + block.bytes;
             ++at) {
          const Placed &other = window[at];
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
    const Placed mine{offset, offset + block.bytes, block.first, block.last};
    for (int w = windowOf(block.first); w <= windowOf(block.last); ++w) {
      std::vector<Placed> &window = windows_[w];
      window.insert(std::upper_bound(window.begin(), window.end(), mine,
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
  int windowOf(int time) const { return (time - begin_) / length_; }

  int begin_ = 0, length_ = 1;
  std::vector<std::vector<Placed>> windows_; ///< each by begin
  std::vector<size_t> next_;                 ///< in the windows of one block
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
