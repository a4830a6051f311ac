//===- Buckets.cpp - What is under way together ---------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switches/Buckets.h"

#include <algorithm>

namespace dyna::switches {

/// How far a piece may stay behind the last group of its ranks: none would make
/// each wait for the busiest, many would put what is needed late first.
constexpr size_t kGroupsBehind = 1;

void Buckets::makeRoom(const Route &route, int64_t bytes) {
  current_ = 0;
  for (const Hop &hop : route)
    for (int rank : {hop.from, hop.to})
      current_ = std::max({current_, room_[rank],
                           last_[rank] - std::min(last_[rank], kGroupsBehind)});
  for (;; ++current_) {
    if (groups_.size() <= current_)
      groups_.resize(current_ + 1);
    Group &group = groups_[current_];
    // Alone it may be what it is.
    const bool isFirst = isEmpty(group, route);
    take(group, route, bytes, 1);
    if (isFirst || !findFull(group, route))
      break;
    take(group, route, bytes, -1);
  }
  for (const Hop &hop : route)
    for (int rank : {hop.from, hop.to})
      last_[rank] = std::max(last_[rank], current_);
}

void Buckets::add(const Hop &hop, SwitchTransfer transfer) {
  groups_[current_][hop.level].transfers.push_back(std::move(transfer));
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
      if (groups_[g][level].transfers.empty())
        continue;
      plan.buckets.push_back({std::move(groups_[g][level].transfers), last[g]});
      last[g] = static_cast<int>(plan.buckets.size()) - 1;
    }
  return plan;
}

void Buckets::take(Group &group, const Route &route, int64_t bytes,
                   int sign) const {
  for (const Hop &hop : route) {
    while (group.size() <= static_cast<size_t>(hop.level))
      group.push_back({{}, std::vector<Use>(network_.ranks)});
    Use &sender = group[hop.level].used[hop.from];
    Use &receiver = group[hop.level].used[hop.to];
    sender.transfers += sign;
    if (hop.from == hop.to)
      continue;
    receiver.transfers += sign;
    sender.sent += sign * bytes;
    receiver.received += sign * bytes;
  }
}

bool Buckets::isEmpty(const Group &group, const Route &route) const {
  for (const Hop &hop : route)
    for (int rank : {hop.from, hop.to})
      if (static_cast<size_t>(hop.level) < group.size() &&
          group[hop.level].used[rank].transfers > 0)
        return false;
  return true;
}

bool Buckets::findFull(const Group &group, const Route &route) {
  bool isAnyFull = false;
  for (const Hop &hop : route)
    for (int rank : {hop.from, hop.to}) {
      const Use &use = group[hop.level].used[rank];
      if (use.transfers <= options_.bucketTransfers &&
          std::max(use.sent, use.received) <= options_.bucketBytes)
        continue;
      room_[rank] = current_ + 1;
      isAnyFull = true;
    }
  return isAnyFull;
}

} // namespace dyna::switches
