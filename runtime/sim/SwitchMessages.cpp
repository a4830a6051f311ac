//===- SwitchMessages.cpp - Reads the messages of switch plans -----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/SwitchMessages.h"

namespace dyna {
namespace {

/// Joins the transfers of one bucket to messages.
class Joiner {
public:
  Joiner(const std::vector<SwitchTensor> &tensors, int ranks,
         SwitchMessages &result)
      : tensors_(tensors), result_(result),
        parts_(static_cast<size_t>(ranks), -1), heads_(parts_.size(), -1),
        message_(parts_.size(), -1) {}

  /// `firstBucket` is the number of the plan's first bucket in the result.
  void add(const SwitchBucket &bucket, int firstBucket) {
    firstPart_ = result_.parts.size();
    next_.assign(bucket.transfers.size(), -1);
    for (size_t i = 0; i < bucket.transfers.size(); ++i) {
      const SwitchTransfer &one = bucket.transfers[i];
      partOf(one.from).handsOn |= one.source == SwitchPlace::Passing;
      SwitchMessages::Part &receiver = partOf(one.to);
      if (one.target == SwitchPlace::Passing)
        receiver.passing += bytesOf(one);
      if (one.from == one.to)
        continue;
      next_[i] = heads_[one.from];
      heads_[one.from] = static_cast<int>(i);
    }
    for (size_t p = firstPart_; p < result_.parts.size(); ++p)
      joinSender(bucket, result_.parts[p].rank);
    for (size_t p = firstPart_; p < result_.parts.size(); ++p)
      parts_[result_.parts[p].rank] = -1;
    result_.buckets.push_back(
        {result_.messages.size(), result_.parts.size(),
         bucket.after < 0 ? -1 : firstBucket + bucket.after});
  }

private:
  int64_t bytesOf(const SwitchTransfer &one) const {
    return one.box.volume() * tensors_[one.tensor].elementBytes;
  }

  SwitchMessages::Part &partOf(int rank) {
    if (parts_[rank] < 0) {
      parts_[rank] = static_cast<int>(result_.parts.size() - firstPart_);
      result_.parts.push_back({rank});
    }
    return result_.parts[firstPart_ + static_cast<size_t>(parts_[rank])];
  }

  /// Adds one message to each rank that the sender sends something to.
  void joinSender(const SwitchBucket &bucket, int from) {
    const auto first = static_cast<int64_t>(result_.messages.size());
    for (int i = heads_[from]; i >= 0; i = next_[static_cast<size_t>(i)]) {
      const SwitchTransfer &one = bucket.transfers[static_cast<size_t>(i)];
      if (message_[one.to] < first) {
        message_[one.to] = static_cast<int64_t>(result_.messages.size());
        result_.messages.push_back({from, one.to, 0, 0});
      }
      auto &message = result_.messages[static_cast<size_t>(message_[one.to])];
      ++message.transfers;
      message.bytes += bytesOf(one);
    }
    for (size_t m = static_cast<size_t>(first); m < result_.messages.size();
         ++m) {
      const SwitchMessages::Message &message = result_.messages[m];
      partOf(from).sent += message.bytes;
      partOf(message.to).received += message.bytes;
    }
    heads_[from] = -1;
  }

  const std::vector<SwitchTensor> &tensors_;
  SwitchMessages &result_;
  size_t firstPart_ = 0;
  std::vector<int> parts_;       ///< of the bucket, by rank; -1: none
  std::vector<int> heads_;       ///< last transfer of each sender
  std::vector<int> next_;        ///< a transfer of the same sender before it
  std::vector<int64_t> message_; ///< last message to each receiver
};

} // namespace

void SwitchMessages::add(const std::vector<SwitchTensor> &tensors,
                         const SwitchPlan &plan, int ranks) {
  const int firstBucket = static_cast<int>(buckets.size());
  Joiner joiner(tensors, ranks, *this);
  for (const SwitchBucket &bucket : plan.buckets)
    joiner.add(bucket, firstBucket);
}

SwitchMessages SwitchMessages::of(const std::vector<SwitchTensor> &tensors,
                                  const SwitchPlan &plan, int ranks) {
  SwitchMessages result;
  result.add(tensors, plan, ranks);
  return result;
}

} // namespace dyna
