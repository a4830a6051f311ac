//===- SwitchMessages.cpp - Reads the messages of switch plans -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/SwitchMessages.h"

namespace dyna {

MessageJoiner::MessageJoiner(int ranks, SwitchMessages &result)
    : result_(result), parts_(static_cast<size_t>(ranks), -1),
      message_(parts_.size()) {}

void MessageJoiner::begin() {
  firstPart_ = result_.parts.size();
  firstMessage_ = static_cast<int64_t>(result_.messages.size());
}

void MessageJoiner::add(int from, int to, int64_t bytes, SwitchPlace source,
                        SwitchPlace target) {
  partOf(from).handsOn |= source == SwitchPlace::Passing;
  SwitchMessages::Part &receiver = partOf(to);
  if (target == SwitchPlace::Passing)
    receiver.passing += bytes;
  if (from == to)
    return;
  std::vector<int64_t> &known = message_[from];
  if (known.empty())
    known.assign(parts_.size(), -1);
  int64_t &number = known[to];
  if (number < firstMessage_) {
    number = static_cast<int64_t>(result_.messages.size());
    result_.messages.push_back({from, to, 0, 0});
  }
  SwitchMessages::Message &message =
      result_.messages[static_cast<size_t>(number)];
  ++message.transfers;
  message.bytes += bytes;
}

void MessageJoiner::end(int after) {
  for (auto m = static_cast<size_t>(firstMessage_); m < result_.messages.size();
       ++m) {
    const SwitchMessages::Message &message = result_.messages[m];
    partOf(message.from).sent += message.bytes;
    partOf(message.to).received += message.bytes;
  }
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

void SwitchMessages::add(const std::vector<SwitchTensor> &tensors,
                         const SwitchPlan &plan, int ranks) {
  const int firstBucket = static_cast<int>(buckets.size());
  MessageJoiner joiner(ranks, *this);
  for (const SwitchBucket &bucket : plan.buckets) {
    joiner.begin();
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
