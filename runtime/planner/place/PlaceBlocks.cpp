//===- PlaceBlocks.cpp - Assigns offsets to blocks with lifetimes ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/place/PlaceBlocks.h"

#include "runtime/planner/place/PlacedBlocks.h"

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
