//===- PlacedBlocks.cpp - Finds free offsets beside placed blocks ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/place/PlacedBlocks.h"

#include <algorithm>

namespace dyna {

void ByteRanges::add(int64_t begin, int64_t end) {
  // Ranges that touch become one.
  auto first = std::lower_bound(
      ranges_.begin(), ranges_.end(), begin,
      [](const Range &range, int64_t at) { return range.end < at; });
  auto behind = first;
  while (behind != ranges_.end() && behind->begin <= end)
    ++behind;
  if (first == behind) {
    ranges_.insert(first, {begin, end});
    return;
  }
  first->begin = std::min(first->begin, begin);
  first->end = std::max(std::prev(behind)->end, end);
  ranges_.erase(std::next(first), behind);
}

int64_t ByteRanges::lowestFree(int64_t offset, int64_t bytes) const {
  auto range = std::upper_bound(
      ranges_.begin(), ranges_.end(), offset,
      [](int64_t at, const Range &range) { return at < range.end; });
  for (; range != ranges_.end() && range->begin < offset + bytes; ++range)
    offset = range->end;
  return offset;
}

PlacedBlocks::PlacedBlocks(const std::vector<BlockLifetime> &blocks,
                           const std::vector<int> &order) {
  firsts_.reserve(order.size());
  for (int b : order)
    firsts_.push_back(blocks[b].first);
  std::sort(firsts_.begin(), firsts_.end());
  firsts_.erase(std::unique(firsts_.begin(), firsts_.end()), firsts_.end());
  // As many windows as a quarter of the square root. A long life is added to each of
  // its windows, and a short one is compared with a window's blocks.
  std::size_t count = 1;
  while (16 * count * count < order.size())
    count *= 2;
  length_ = static_cast<int>((firsts_.size() + count - 1) / count);
  length_ = std::max(length_, 1);
  windows_.resize(count);
  nodes_.resize(2 * count);
}

PlacedBlocks::Life PlacedBlocks::lifeOf(const BlockLifetime &block) const {
  const auto first =
      std::lower_bound(firsts_.begin(), firsts_.end(), block.first);
  const auto behind = std::upper_bound(first, firsts_.end(), block.last);
  return {static_cast<int>(first - firsts_.begin()),
          static_cast<int>(behind - firsts_.begin()) - 1};
}

PlacedBlocks::Windows PlacedBlocks::windowsOf(Life life) const {
  const int first = life.first / length_, last = life.last / length_;
  const bool hasFirst = life.first == first * length_;
  const bool hasLast = life.last + 1 == (last + 1) * length_ ||
                       life.last + 1 == static_cast<int>(firsts_.size());
  return {first, last, hasFirst ? first : first + 1, hasLast ? last + 1 : last};
}

template <typename Within, typename Around>
void PlacedBlocks::visit(int begin, int end, const Within &within,
                         const Around &around) {
  if (begin >= end)
    return;
  const int count = static_cast<int>(windows_.size());
  int low = begin + count, behind = end + count;
  // Nodes above the first and the last window of the range, if they have others too.
  const int first = low, last = behind - 1;
  for (int level = 1, a = first / 2, b = last / 2; b > 0;
       ++level, a /= 2, b /= 2) {
    auto hasOthers = [&](int node) {
      return (node << level) < first || ((node + 1) << level) - 1 > last;
    };
    if (hasOthers(a))
      around(nodes_[a]);
    if (b != a && hasOthers(b))
      around(nodes_[b]);
  }
  for (; low < behind; low /= 2, behind /= 2) {
    if (low % 2 == 1)
      within(nodes_[low++]);
    if (behind % 2 == 1)
      within(nodes_[--behind]);
  }
}

int64_t PlacedBlocks::lowestIn(Cursor &cursor, Life life, int64_t bytes,
                               int64_t offset) {
  const std::vector<Placed> &others = cursor.window->others;
  offset = cursor.window->solid.lowestFree(offset, bytes);
  // What is behind the cursor ends below the offset, or lives at another time.
  for (; cursor.at < others.size() && others[cursor.at].begin < offset + bytes;
       ++cursor.at) {
    const Placed &other = others[cursor.at];
    if (other.end > offset && other.life.first <= life.last &&
        life.first <= other.life.last)
      offset = other.end;
  }
  return offset;
}

int64_t PlacedBlocks::lowest(const BlockLifetime &block) {
  if (block.bytes == 0)
    return 0;
  const Life life = lifeOf(block);
  const Windows own = windowsOf(life);
  met_.clear();
  visit(
      own.inside, own.behind,
      [&](const Node &node) { met_.push_back(&node.any); },
      [&](const Node &node) { met_.push_back(&node.covering); });
  Cursor parts[2];
  int count = 0;
  if (own.first < own.inside)
    parts[count++] = {&windows_[own.first], 0};
  if (own.behind <= own.last && own.last >= own.inside)
    parts[count++] = {&windows_[own.last], 0};
  // An offset that rises may meet more of what was looked at before.
  int64_t offset = 0;
  for (int64_t before = -1; before != offset;) {
    before = offset;
    for (int part = 0; part < count; ++part)
      offset = lowestIn(parts[part], life, block.bytes, offset);
    for (const ByteRanges *ranges : met_)
      offset = ranges->lowestFree(offset, block.bytes);
  }
  return offset;
}

void PlacedBlocks::add(const BlockLifetime &block, int64_t offset) {
  if (block.bytes == 0)
    return;
  const Placed placed = {offset, offset + block.bytes, lifeOf(block)};
  const Windows own = windowsOf(placed.life);
  const int count = static_cast<int>(windows_.size());
  for (int w = own.first; w <= own.last; ++w) {
    if (w >= own.inside && w < own.behind) {
      windows_[w].solid.add(placed.begin, placed.end);
      continue;
    }
    std::vector<Placed> &others = windows_[w].others;
    others.insert(std::upper_bound(others.begin(), others.end(), placed,
                                   [](const Placed &x, const Placed &y) {
                                     return x.begin < y.begin;
                                   }),
                  placed);
    for (int node = w + count; node > 0; node /= 2)
      nodes_[node].any.add(placed.begin, placed.end);
  }
  visit(
      own.inside, own.behind,
      [&](Node &node) {
        node.covering.add(placed.begin, placed.end);
        node.any.add(placed.begin, placed.end);
      },
      [&](Node &node) { node.any.add(placed.begin, placed.end); });
}

} // namespace dyna
