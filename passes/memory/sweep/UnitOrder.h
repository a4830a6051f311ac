//===- UnitOrder.h - Keeps units in an order that can be compared ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#ifndef DYNA_PASSES_MEMORY_SWEEP_UNITORDER_H
#define DYNA_PASSES_MEMORY_SWEEP_UNITORDER_H

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mlir::dyna {

/// A list of units. Each unit has a number, rising along the list, with gaps
/// between them. If a gap is used up, the smallest neighbourhood that is not
/// crowded spreads out again (Bender et al. 2002). That takes log n steps per
/// unit moved.
class UnitOrder {
public:
  UnitOrder(size_t count, int64_t &steps)
      : steps(steps), head(static_cast<int>(count)), place(count + 1),
        next(count + 1), previous(count + 1) {
    const int64_t gap = end / static_cast<int64_t>(count + 1);
    int last = head;
    for (int unit = 0; unit < head; ++unit) {
      place[unit] = (unit + 1) * gap;
      link(last, unit);
      last = unit;
    }
    link(last, head);
  }

  bool isBefore(int a, int b) const { return place[a] < place[b]; }

  std::vector<int> all() const {
    std::vector<int> units;
    for (int unit = next[head]; unit != head; unit = next[unit])
      units.push_back(unit);
    return units;
  }

  /// Removes a unit. Returns the unit that stood in front of it.
  int remove(int unit) {
    link(previous[unit], next[unit]);
    return previous[unit];
  }

  /// Inserts units that are not in the list after a unit that is, or after the
  /// unit that `remove` has returned.
  void insertBehind(int anchor, const std::vector<int> &units) {
    const int follower = next[anchor];
    auto remaining = static_cast<int64_t>(units.size());
    for (int unit : units) {
      auto shareOfRoom = [&] {
        int64_t limit = follower == head ? end : place[follower];
        return (limit - place[anchor]) / (remaining + 1);
      };
      if (shareOfRoom() == 0)
        makeRoom(anchor);
      place[unit] = place[anchor] + std::max<int64_t>(shareOfRoom(), 1);
      link(anchor, unit);
      link(unit, follower);
      anchor = unit;
      --remaining;
    }
  }

  /// Sorts units of the list into the order of the list.
  void sort(std::vector<int> &units) const {
    std::sort(units.begin(), units.end(),
              [&](int a, int b) { return isBefore(a, b); });
  }

private:
  static constexpr int endBits = 62;
  static constexpr int64_t end = int64_t(1) << endBits;

  void link(int unit, int follower) {
    next[unit] = follower;
    previous[follower] = unit;
  }

  /// Frees at least one number after the unit.
  void makeRoom(int unit) {
    int first = unit, last = unit;
    int64_t count = 1;
    // Larger neighbourhoods have to be emptier, so that they last longer.
    double most = 1;
    for (int bits = 1; bits <= endBits; ++bits) {
      most *= 4.0 / 3;
      const int64_t size = int64_t(1) << bits, low = place[unit] & ~(size - 1);
      for (; first != head && place[previous[first]] >= low; ++count)
        first = previous[first];
      for (; next[last] != head && place[next[last]] < low + size; ++count)
        last = next[last];
      if (size < 2 * count ||
          (static_cast<double>(count) > most && bits < endBits))
        continue;
      steps += count;
      const int64_t gap = size / count;
      int64_t at = low;
      for (int moved = first; count > 0; --count, at += gap) {
        place[moved] = at;
        moved = next[moved];
      }
      return;
    }
  }

  int64_t &steps;
  int head; ///< stands in front of the first and behind the last, at 0
  std::vector<int64_t> place;
  std::vector<int> next, previous;
};

} // namespace mlir::dyna

#endif // DYNA_PASSES_MEMORY_SWEEP_UNITORDER_H
