//===- Buckets.cpp - Groups messages into buckets -------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/routes/Buckets.h"

#include <algorithm>

namespace dyna::switches {

void Buckets::makeRoom(const Route &route, int64_t bytes, double progress) {
  current_ = std::min(
      count_ - 1, static_cast<size_t>(progress * static_cast<double>(count_)));
  for (const Hop &hop : route)
    for (const auto &[rank, way] :
         {std::pair(hop.from, Way::Out), std::pair(hop.to, Way::In)})
      current_ = std::max(current_, room(hop.level, rank, way));
  for (;; ++current_) {
    if (groups_.size() <= current_)
      groups_.resize(current_ + 1);
    Group &group = groups_[current_];
    findFirst(group, route);
    take(group, route, bytes, 1);
    if (!findFull(group, route))
      break;
    take(group, route, bytes, -1);
  }
}

size_t &Buckets::room(int level, int rank, Way way) {
  const size_t index =
      (static_cast<size_t>(level) * network_.ranks + rank) * 2 +
      static_cast<size_t>(way);
  if (room_.size() <= index)
    room_.resize(static_cast<size_t>(level + 1) * network_.ranks * 2, 0);
  return room_[index];
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

void Buckets::findFirst(const Group &group, const Route &route) {
  isFirst_.resize(route.size());
  for (size_t i = 0; i < route.size(); ++i) {
    const Hop &hop = route[i];
    isFirst_[i] = First();
    if (static_cast<size_t>(hop.level) >= group.size())
      continue;
    const Use &sender = group[hop.level].used[hop.from],
              &receiver = group[hop.level].used[hop.to];
    isFirst_[i] = {sender.transfers == 0, receiver.transfers == 0,
                   sender.sent == 0, receiver.received == 0};
  }
}

bool Buckets::findFull(const Group &group, const Route &route) {
  const int64_t transfers = options_.bucketTransfers,
                bytes = options_.bucketBytes;
  bool isAnyFull = false;
  for (size_t i = 0; i < route.size(); ++i) {
    const Hop &hop = route[i];
    const First &first = isFirst_[i];
    const Level &level = group[hop.level];
    auto check = [&](int rank, Way way, int64_t used, bool fits) {
      const Use &use = level.used[rank];
      // Do not look again at groups that are nearly full.
      if (size_t &from = room(hop.level, rank, way);
          from == current_ &&
          (use.transfers >= transfers || used >= bytes - bytes / 16))
        ++from;
      isAnyFull |= !fits;
    };
    const Use &sender = level.used[hop.from], &receiver = level.used[hop.to];
    check(hop.from, Way::Out, sender.sent,
          (sender.transfers <= transfers || first.atSender) &&
              (sender.sent <= bytes || first.sent));
    check(hop.to, Way::In, receiver.received,
          (receiver.transfers <= transfers || first.atReceiver) &&
              (receiver.received <= bytes || first.received));
  }
  return isAnyFull;
}

} // namespace dyna::switches
