//===- SwitchMessages.cpp - Reads the messages of switch plans -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/SwitchMessages.h"

namespace dyna {

MessageJoiner::MessageJoiner(int ranks, SwitchMessages &result)
    : result_(result), parts_(static_cast<size_t>(ranks), -1),
      heads_(parts_.size(), -1), message_(parts_.size(), -1) {}

void MessageJoiner::begin(size_t transfers) {
  firstPart_ = result_.parts.size();
  transfers_.clear();
  transfers_.reserve(transfers);
}

void MessageJoiner::add(int from, int to, int64_t bytes, SwitchPlace source,
                        SwitchPlace target) {
  partOf(from).handsOn |= source == SwitchPlace::Passing;
  SwitchMessages::Part &receiver = partOf(to);
  if (target == SwitchPlace::Passing)
    receiver.passing += bytes;
  if (from == to)
    return;
  transfers_.push_back({to, heads_[from], bytes});
  heads_[from] = static_cast<int>(transfers_.size()) - 1;
}

void MessageJoiner::end(int after) {
  for (size_t p = firstPart_; p < result_.parts.size(); ++p)
    joinSender(result_.parts[p].rank);
  for (size_t p = firstPart_; p < result_.parts.size(); ++p)
    parts_[result_.parts[p].rank] = -1;
  result_.buckets.push_back(
      {result_.messages.size(), result_.parts.size(), after});
}

SwitchMessages::Part &MessageJoiner::partOf(int rank) {
  if (parts_[rank] < 0) {
    parts_[rank] = static_cast<int>(result_.parts.size() - firstPart_);
    result_.parts.push_back({rank});
  }
  return result_.parts[firstPart_ + static_cast<size_t>(parts_[rank])];
}

/// Adds one message to each rank that the sender sends something to.
void MessageJoiner::joinSender(int from) {
  const auto first = static_cast<int64_t>(result_.messages.size());
  for (int i = heads_[from]; i >= 0;
       i = transfers_[static_cast<size_t>(i)].next) {
    const Transfer &one = transfers_[static_cast<size_t>(i)];
    if (message_[one.to] < first) {
      message_[one.to] = static_cast<int64_t>(result_.messages.size());
      result_.messages.push_back({from, one.to, 0, 0});
    }
    auto &message = result_.messages[static_cast<size_t>(message_[one.to])];
    ++message.transfers;
    message.bytes += one.bytes;
  }
  for (size_t m = static_cast<size_t>(first); m < result_.messages.size();
       ++m) {
    const SwitchMessages::Message &message = result_.messages[m];
    partOf(from).sent += message.bytes;
    partOf(message.to).received += message.bytes;
  }
  heads_[from] = -1;
}

void SwitchMessages::add(const std::vector<SwitchTensor> &tensors,
                         const SwitchPlan &plan, int ranks) {
  const int firstBucket = static_cast<int>(buckets.size());
  MessageJoiner joiner(ranks, *this);
  for (const SwitchBucket &bucket : plan.buckets) {
    joiner.begin(bucket.transfers.size());
    for (const SwitchTransfer &one : bucket.transfers)
      joiner.add(one.from, one.to,
                 one.box.volume() * tensors[one.tensor].elementBytes,
                 one.source, one.target);
    joiner.end(bucket.after < 0 ? -1 : firstBucket + bucket.after);
  }
}

SwitchMessages SwitchMessages::of(const std::vector<SwitchTensor> &tensors,
                                  const SwitchPlan &plan, int ranks) {
  SwitchMessages result;
  result.add(tensors, plan, ranks);
  return result;
}

} // namespace dyna
