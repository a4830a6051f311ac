//===- PlaceBlocks.cpp - Offsets for blocks with lifetimes ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/PlaceBlocks.h"

#include <algorithm>
#include <array>
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

/// Places `order` one after the other at the lowest offset that is free during
/// the block's whole life; returns the peak. Whom a life meets nobody can foretell,
/// a processor neither: so those that it meets are first listed without a branch,
/// some at a time, as the lowest gap may come early.
int64_t placeLowest(const std::vector<BlockLifetime> &blocks,
                    const std::vector<int> &order,
                    std::vector<int64_t> &offsets) {
  constexpr size_t some = 64;
  struct Bytes {
    int64_t begin, end;
  };
  // Of those that are placed, by begin.
  std::vector<Bytes> placed;
  std::vector<int> firsts, lasts;
  placed.reserve(order.size());
  firsts.reserve(order.size());
  lasts.reserve(order.size());
  int64_t peak = 0;
  for (int b : order) {
    const BlockLifetime &block = blocks[b];
    int64_t offset = 0;
    bool isFound = false;
    for (size_t at = 0; at < placed.size() && !isFound; at += some) {
      const size_t end = std::min(at + some, placed.size());
      std::array<size_t, some> met;
      size_t count = 0;
      for (size_t i = at; i < end; ++i) {
        met[count] = i;
        count += static_cast<size_t>(lasts[i] >= block.first) &
                 static_cast<size_t>(firsts[i] <= block.last);
      }
      for (size_t k = 0; k < count && !isFound; ++k) {
        isFound = placed[met[k]].begin >= offset + block.bytes;
        if (!isFound)
          offset = std::max(offset, placed[met[k]].end);
      }
    }
    offsets[b] = offset;
    auto place = std::upper_bound(
        placed.begin(), placed.end(), offset,
        [](int64_t begin, const Bytes &other) { return begin < other.begin; });
    const auto number = place - placed.begin();
    placed.insert(place, {offset, offset + block.bytes});
    firsts.insert(firsts.begin() + number, block.first);
    lasts.insert(lasts.begin() + number, block.last);
    peak = std::max(peak, offset + block.bytes);
  }
  return peak;
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

} // namespace

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
  std::vector<int64_t> offsets(blocks.size(), 0);
  for (std::vector<int> &group : connectedGroups(blocks)) {
    int64_t bound = largestSum(blocks, group);
    // By lifetime first: kept blocks form a stack at the bottom, and the brief
    // ones share the space above. `group` itself is ordered by start.
    std::vector<int> lifetimeOrder = group, sizeOrder = group;
    std::sort(lifetimeOrder.begin(), lifetimeOrder.end(), byLife);
    std::sort(sizeOrder.begin(), sizeOrder.end(), bySize);
    int64_t best = INT64_MAX;
    for (const std::vector<int> *order : {&lifetimeOrder, &sizeOrder, &group}) {
      int64_t peak = placeLowest(blocks, *order, offsets);
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
