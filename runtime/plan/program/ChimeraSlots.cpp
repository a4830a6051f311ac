//===- ChimeraSlots.cpp - Numbers the items of mirrored pipelines ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/plan/program/ChimeraSlots.h"

#include <algorithm>
#include <array>
#include <limits>
#include <map>

namespace dyna {
namespace {

using Kind = SlotItem::Kind;
using Stages = std::vector<std::vector<SlotItem>>;
using Links = std::vector<std::pair<int, int>>;

/// Finds slots stage by stage. Each stage goes on as far as the others allow.
class SlotFinder {
public:
  SlotFinder(const Stages &stages, const Links &links)
      : stages_(stages), before_(stages.size()), behind_(stages.size()),
        begun_(stages.size()) {
    for (auto [from, to] : links) {
      before_[to].push_back(from);
      behind_[from].push_back(to);
    }
    for (const auto &items : stages) {
      slots_.emplace_back(items.size(), std::numeric_limits<int64_t>::max());
      next_.push_back(0);
    }
  }

  std::vector<std::vector<int64_t>> find() {
    std::vector<int> ready;
    for (size_t s = stages_.size(); s > 0; --s)
      ready.push_back(static_cast<int>(s) - 1);
    while (!ready.empty()) {
      const int stage = ready.back();
      ready.pop_back();
      const size_t first = next_[stage];
      advance(stage);
      if (next_[stage] == first)
        continue;
      for (const auto *others : {&before_[stage], &behind_[stage]})
        ready.insert(ready.end(), others->begin(), others->end());
    }
    return std::move(slots_);
  }

private:
  using Key = std::pair<Kind, int>;

  /// Gives slots to the items of a stage up to one that waits for another stage.
  void advance(int stage) {
    const auto &items = stages_[stage];
    for (size_t &next = next_[stage]; next < items.size(); ++next) {
      const SlotItem &item = items[next];
      int64_t slot = next > 0 ? slots_[stage][next - 1] : 0;
      if (item.kind != Kind::Weight) {
        slot += next > 0 ? 1 : 0;
        const bool isForward = item.kind == Kind::Forward;
        for (int other : isForward ? before_[stage] : behind_[stage]) {
          const auto found = ends_.find({other, {item.kind, item.microBatch}});
          if (found != ends_.end())
            slot = std::max(slot, found->second + 1);
          else if (isListed(other, item))
            return;
        }
        int &number = begun_[stage][isForward ? 0 : 1];
        slot = std::max(slot, chimeraSlot(isForward, number++, stage,
                                          static_cast<int>(stages_.size())));
        ends_[{stage, {item.kind, item.microBatch}}] = slot;
      }
      slots_[stage][next] = slot;
    }
  }

  /// Returns true if a stage has this item, too. A stage without backwards has none.
  bool isListed(int stage, const SlotItem &item) {
    if (listed_.empty())
      for (size_t s = 0; s < stages_.size(); ++s)
        for (const SlotItem &one : stages_[s])
          listed_[{static_cast<int>(s), {one.kind, one.microBatch}}] = true;
    return listed_.count({stage, {item.kind, item.microBatch}}) > 0;
  }

  const Stages &stages_;
  std::vector<std::vector<int>> before_, behind_; ///< stages linked to a stage
  std::vector<std::array<int, 2>> begun_;         ///< forwards and backwards
  std::vector<size_t> next_; ///< item without a slot, by stage
  std::vector<std::vector<int64_t>> slots_;
  std::map<std::pair<int, Key>, int64_t> ends_; ///< slots by stage and item
  std::map<std::pair<int, Key>, bool> listed_;
};

} // namespace

std::vector<std::vector<int64_t>> chimeraSlots(const Stages &stages,
                                               const Links &links) {
  return SlotFinder(stages, links).find();
}

} // namespace dyna
