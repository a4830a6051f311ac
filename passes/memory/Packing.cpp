//===- Packing.cpp - Intervals in time packed into memory -*- C++ -*-===//
//
// Part of the Dyna project, under the Apache License v2.0 with LLVM Exceptions.
// See LICENSE for license information.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "passes/memory/Packing.h"
#include <algorithm>
#include <numeric>

namespace mlir::dyna {

namespace {

using Items = std::vector<PackItem>;
using Order = std::vector<size_t>;

bool aliveTogether(const PackItem &a, const PackItem &b) {
  return a.begin <= b.end && b.begin <= a.end;
}

enum class Fit { Lowest, Smallest };

/// Where `item` goes among the blocks placed so far: into the lowest gap that
/// is large enough, or the smallest such gap.
int64_t findOffset(const Items &items, const std::vector<int64_t> &offsets,
                   const Order &placed, const PackItem &item, Fit fit) {
  std::vector<std::pair<int64_t, int64_t>> taken;
  for (size_t other : placed)
    if (items[other].size > 0 && aliveTogether(items[other], item))
      taken.push_back({offsets[other], offsets[other] + items[other].size});
  std::sort(taken.begin(), taken.end());

  int64_t free = 0, best = -1, bestGap = 0;
  for (auto [begin, end] : taken) {
    int64_t gap = begin - free;
    if (!item.onTop && gap >= item.size && (best < 0 || gap < bestGap)) {
      best = free;
      bestGap = gap;
      if (fit == Fit::Lowest)
        return best;
    }
    free = std::max(free, end);
  }
  return best < 0 ? free : best;
}

Packing packInOrder(const Items &items, const Order &order, Fit fit) {
  Packing packing;
  packing.offsets.assign(items.size(), 0);
  Order placed;
  for (bool onTop : {false, true}) {
    for (size_t index : order) {
      if (items[index].onTop != onTop)
        continue;
      int64_t offset =
          findOffset(items, packing.offsets, placed, items[index], fit);
      packing.offsets[index] = offset;
      packing.size = std::max(packing.size, offset + items[index].size);
      placed.push_back(index);
    }
  }
  return packing;
}

/// Tries every order. Placing the blocks of an optimal packing by rising
/// offset, each as low as it can go, never makes it larger: one of the orders
/// is therefore optimal.
void tryAllOrders(const Items &items, int64_t bound, Packing &best) {
  Order order(items.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    Packing packing = packInOrder(items, order, Fit::Lowest);
    if (packing.size < best.size)
      best = std::move(packing);
  } while (best.size > bound &&
           std::next_permutation(order.begin(), order.end()));
}

/// Blocks that reach the top are placed first in the next try.
void improve(const Items &items, int64_t bound, Order order, Packing &best) {
  constexpr int maxTries = 200;
  Packing current = packInOrder(items, order, Fit::Lowest);
  for (int tries = 0; tries < maxTries; ++tries) {
    if (current.size < best.size)
      best = current;
    if (best.size <= bound)
      return;
    Order next, others;
    for (size_t index : order) {
      bool isTop = current.offsets[index] + items[index].size == current.size;
      (isTop ? next : others).push_back(index);
    }
    next.insert(next.end(), others.begin(), others.end());
    if (next == order)
      return;
    order = std::move(next);
    current = packInOrder(items, order, Fit::Lowest);
  }
}

} // namespace

int64_t maxLive(const std::vector<PackItem> &items) {
  int64_t most = 0;
  // The most is reached when some item begins.
  for (const PackItem &now : items) {
    int64_t live = 0;
    for (const PackItem &item : items)
      if (item.begin <= now.begin && now.begin <= item.end)
        live += item.size;
    most = std::max(most, live);
  }
  return most;
}

Packing packItems(const std::vector<PackItem> &items) {
  int64_t bound = maxLive(items);
  Order bySize(items.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  Order byTime = bySize;
  std::sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return std::pair(-items[a].size, a) < std::pair(-items[b].size, b);
  });
  std::sort(byTime.begin(), byTime.end(), [&](size_t a, size_t b) {
    return std::pair(items[a].begin, a) < std::pair(items[b].begin, b);
  });

  Packing best = packInOrder(items, bySize, Fit::Smallest);
  if (best.size <= bound)
    return best;
  if (items.size() <= 7) {
    tryAllOrders(items, bound, best);
    return best;
  }
  improve(items, bound, bySize, best);
  improve(items, bound, byTime, best);
  return best;
}

bool isValidPacking(const std::vector<PackItem> &items,
                    const Packing &packing) {
  if (packing.offsets.size() != items.size())
    return false;
  auto begin = [&](size_t index) { return packing.offsets[index]; };
  auto end = [&](size_t index) { return begin(index) + items[index].size; };
  for (size_t a = 0; a < items.size(); ++a) {
    if (begin(a) < 0 || end(a) > packing.size)
      return false;
    for (size_t b = 0; b < items.size(); ++b) {
      if (a == b || items[b].size == 0 || !aliveTogether(items[a], items[b]))
        continue;
      if (items[a].onTop
              ? begin(a) < end(b)
              : items[a].size > 0 && begin(a) < end(b) && begin(b) < end(a))
        return false;
    }
  }
  return true;
}

} // namespace mlir::dyna
