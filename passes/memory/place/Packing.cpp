//===- Packing.cpp - Packs blocks with lifetimes into memory --------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "passes/memory/place/Packing.h"
#include <algorithm>
#include <numeric>

namespace mlir::dyna {

namespace {

using Items = std::vector<PackItem>;
using Order = std::vector<size_t>;

bool aliveTogether(const PackItem &a, const PackItem &b) {
  return a.begin <= b.end && b.begin <= a.end;
}

/// Lists, for each item, the items with bytes that are live at the same time.
/// If the lists would be very long, searches among all items instead.
class Neighbours {
public:
  explicit Neighbours(const Items &items) : items(items), lists(items.size()) {
    Order byTime(items.size());
    std::iota(byTime.begin(), byTime.end(), 0);
    std::sort(byTime.begin(), byTime.end(), [&](size_t a, size_t b) {
      return items[a].begin < items[b].begin;
    });
    Order alive;
    for (size_t now : byTime) {
      auto hasEnded = [&](size_t other) {
        return items[other].end < items[now].begin;
      };
      alive.erase(std::remove_if(alive.begin(), alive.end(), hasEnded),
                  alive.end());
      count += static_cast<int64_t>(alive.size());
      if (count > maxListed) {
        lists.clear();
        count = static_cast<int64_t>(items.size() * items.size());
        return;
      }
      for (size_t other : alive) {
        if (items[other].size > 0)
          lists[now].push_back(other);
        if (items[now].size > 0)
          lists[other].push_back(now);
      }
      if (items[now].begin <= items[now].end)
        alive.push_back(now);
    }
  }

  template <typename Visitor> void forEach(size_t item, Visitor visit) const {
    if (!lists.empty()) {
      for (size_t other : lists[item])
        visit(other);
      return;
    }
    for (size_t other = 0; other < items.size(); ++other)
      if (other != item && items[other].size > 0 &&
          aliveTogether(items[other], items[item]))
        visit(other);
  }

  /// Returns an estimate of the work to place all items.
  int64_t work() const { return count + static_cast<int64_t>(items.size()); }

private:
  static constexpr int64_t maxListed = int64_t(1) << 22;
  const Items &items;
  std::vector<Order> lists; ///< empty: too many
  int64_t count = 0;
};

enum class Fit { Lowest, Smallest };

/// Returns the offset for an item among the blocks placed so far. Uses the
/// lowest gap that is large enough, or the smallest such gap. Offsets of
/// unplaced items are -1.
int64_t findOffset(const Items &items, const Neighbours &neighbours,
                   const std::vector<int64_t> &offsets, size_t index, Fit fit) {
  const PackItem &item = items[index];
  std::vector<std::pair<int64_t, int64_t>> taken;
  neighbours.forEach(index, [&](size_t other) {
    if (offsets[other] >= 0)
      taken.push_back({offsets[other], offsets[other] + items[other].size});
  });
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

Packing packInOrder(const Items &items, const Neighbours &neighbours,
                    const Order &order, Fit fit) {
  Packing packing;
  packing.offsets.assign(items.size(), -1);
  for (bool onTop : {false, true}) {
    for (size_t index : order) {
      if (items[index].onTop != onTop)
        continue;
      int64_t offset =
          findOffset(items, neighbours, packing.offsets, index, fit);
      packing.offsets[index] = offset;
      packing.size = std::max(packing.size, offset + items[index].size);
    }
  }
  return packing;
}

/// Tries every order. Consider an optimal packing, and place its blocks by
/// ascending offset, each as low as possible. The result is never larger. So
/// one of the orders is optimal.
void tryAllOrders(const Items &items, const Neighbours &neighbours,
                  int64_t bound, Packing &best) {
  Order order(items.size());
  std::iota(order.begin(), order.end(), 0);
  do {
    Packing packing = packInOrder(items, neighbours, order, Fit::Lowest);
    if (packing.size < best.size)
      best = std::move(packing);
  } while (best.size > bound &&
           std::next_permutation(order.begin(), order.end()));
}

/// Blocks that reach the top are placed first in the next try. Of many blocks
/// there are fewer tries.
void improve(const Items &items, const Neighbours &neighbours, int64_t bound,
             Order order, Packing &best) {
  constexpr int64_t maxTries = 200, maxWork = 4000000;
  const int64_t tries =
      std::clamp<int64_t>(maxWork / neighbours.work(), 1, maxTries);
  Packing current = packInOrder(items, neighbours, order, Fit::Lowest);
  for (int64_t tried = 0; tried < tries; ++tried) {
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
    current = packInOrder(items, neighbours, order, Fit::Lowest);
  }
}

} // namespace

int64_t maxLive(const std::vector<PackItem> &items) {
  // At one moment ends come before begins.
  std::vector<std::pair<int64_t, int64_t>> changes;
  for (const PackItem &item : items)
    if (item.begin <= item.end) {
      changes.push_back({item.begin, item.size});
      changes.push_back({item.end + 1, -item.size});
    }
  std::sort(changes.begin(), changes.end());
  int64_t live = 0, most = 0;
  for (auto [moment, change] : changes)
    most = std::max(most, live += change);
  return most;
}

Packing packItems(const std::vector<PackItem> &items) {
  int64_t bound = maxLive(items);
  Neighbours neighbours(items);
  Order bySize(items.size());
  std::iota(bySize.begin(), bySize.end(), 0);
  Order byTime = bySize;
  std::sort(bySize.begin(), bySize.end(), [&](size_t a, size_t b) {
    return std::pair(-items[a].size, a) < std::pair(-items[b].size, b);
  });
  std::sort(byTime.begin(), byTime.end(), [&](size_t a, size_t b) {
    return std::pair(items[a].begin, a) < std::pair(items[b].begin, b);
  });

  Packing best = packInOrder(items, neighbours, bySize, Fit::Smallest);
  if (best.size <= bound)
    return best;
  if (items.size() <= 7) {
    tryAllOrders(items, neighbours, bound, best);
    return best;
  }
  improve(items, neighbours, bound, bySize, best);
  improve(items, neighbours, bound, byTime, best);
  return best;
}

} // namespace mlir::dyna
