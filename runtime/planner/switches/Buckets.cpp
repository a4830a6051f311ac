//===- Buckets.cpp - What is under way together ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switches/Buckets.h"

#include <algorithm>

namespace dyna::switches {

void Buckets::makeRoom(const Route &route, int64_t bytes) {
  const bool isFirst = groups_.empty();
  if (isFirst)
    groups_.emplace_back();
  take(route, bytes);
  // Alone in a group it may be what it is.
  if (isFirst || !isTooMuch(route))
    return;
  groups_.emplace_back();
  used_.clear();
  take(route, bytes);
}

void Buckets::add(const Hop &hop, SwitchTransfer transfer) {
  Group &group = groups_.back();
  const auto level = static_cast<size_t>(hop.level);
  if (group.size() <= level)
    group.resize(level + 1);
  group[level].push_back(std::move(transfer));
}

SwitchPlan Buckets::finish() {
  SwitchPlan plan;
  size_t most = 0;
  for (const Group &group : groups_)
    most = std::max(most, group.size());
  std::vector<int> last(groups_.size(), -1);
  for (size_t turn = 0; turn + 1 < groups_.size() + most; ++turn)
    for (size_t g = turn + 1 > most ? turn + 1 - most : 0;
         g < groups_.size() && g <= turn; ++g) {
      const size_t level = turn - g;
      if (level >= groups_[g].size())
        continue;
      plan.buckets.push_back({std::move(groups_[g][level]), last[g]});
      last[g] = static_cast<int>(plan.buckets.size()) - 1;
    }
  return plan;
}

void Buckets::take(const Route &route, int64_t bytes) {
  for (const Hop &hop : route) {
    while (used_.size() <= static_cast<size_t>(hop.level))
      used_.emplace_back(network_.ranks);
    Use &sender = used_[hop.level][hop.from];
    Use &receiver = used_[hop.level][hop.to];
    ++sender.transfers;
    if (hop.from == hop.to)
      continue;
    ++receiver.transfers;
    sender.sent += bytes;
    receiver.received += bytes;
  }
}

bool Buckets::isTooMuch(const Route &route) const {
  for (const Hop &hop : route)
    for (int rank : {hop.from, hop.to}) {
      const Use &use = used_[hop.level][rank];
      if (use.transfers > options_.bucketTransfers ||
          std::max(use.sent, use.received) > options_.bucketBytes)
        return true;
    }
  return false;
}

} // namespace dyna::switches
