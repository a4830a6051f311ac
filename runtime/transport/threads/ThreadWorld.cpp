//===- ThreadWorld.cpp - Matches what ranks start ---------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/Exchange.h"

using namespace dyna;

std::unique_lock<std::mutex> ThreadWorld::lockSpinning() {
  constexpr int turns = 1000; // tens of microseconds
  std::unique_lock<std::mutex> lock(mutex_, std::try_to_lock);
  for (int turn = 0; spins_ && !lock && turn < turns; ++turn) {
    pauseCore();
    lock.try_lock();
  }
  if (!lock)
    lock.lock();
  return lock;
}

StatusOr<std::shared_ptr<Exchange>>
ThreadWorld::message(int from, int to, int32_t tag, bool isSend,
                     std::vector<Strip> strips, int64_t bytes,
                     int32_t addedAs) {
  std::shared_ptr<MessageExchange> exchange;
  bool isLast = false;
  {
    std::unique_lock<std::mutex> lock = lockSpinning();
    uint64_t key = uint64_t(from) << 43 | uint64_t(to) << 22 | uint64_t(tag);
    auto &queue = unmatched_[key];
    bool isFirst = queue.empty() || queue.front()->isSend == isSend;
    if (isFirst) {
      exchange = std::make_shared<MessageExchange>(*this, from, to);
      exchange->isSend = isSend;
      exchange->bytes = bytes;
      queue.push_back(exchange);
    } else {
      exchange = queue.front();
      queue.pop_front();
      if (queue.empty())
        unmatched_.erase(key);
    }
    if (exchange->bytes != bytes)
      return Status::invalidArgument(
          "the message has " +
          std::to_string(isSend ? bytes : exchange->bytes) +
          " bytes, but the receive expects " +
          std::to_string(isSend ? exchange->bytes : bytes));
    (isSend ? exchange->source : exchange->target) = std::move(strips);
    if (!isSend)
      exchange->addedAs = addedAs;
    isLast = exchange->arrive();
    // Strips are added one by one, so each must have whole elements.
    if (isLast && exchange->addedAs != kReplaces)
      for (const Strip &strip : exchange->source)
        if (strip.bytes % elementBytes(exchange->addedAs) != 0)
          return Status::invalidArgument(
              "the receive adds elements of " +
              std::to_string(elementBytes(exchange->addedAs)) +
              " bytes, but the message has rows of " +
              std::to_string(strip.bytes));
  }
  if (isLast)
    exchange->open();
  return std::shared_ptr<Exchange>(std::move(exchange));
}

StatusOr<std::shared_ptr<Exchange>>
ThreadWorld::collective(GroupState &group, const std::vector<int> &ranks,
                        int index, int64_t number,
                        const std::vector<Collective> &collectives) {
  std::shared_ptr<CollectiveExchange> exchange;
  bool isLast = false;
  {
    std::unique_lock<std::mutex> lock = lockSpinning();
    size_t place = static_cast<size_t>(number - group.firstUnmatched);
    if (place == group.unmatched.size())
      group.unmatched.push_back(
          std::make_shared<CollectiveExchange>(*this, ranks, collectives));
    exchange = group.unmatched[place];
    DYNA_RETURN_IF_ERROR(exchange->join(index, collectives));
    isLast = exchange->arrive();
    // Every rank starts exchanges in order, so the first one is complete first.
    if (isLast) {
      group.unmatched.pop_front();
      ++group.firstUnmatched;
    }
  }
  if (isLast)
    exchange->open();
  return std::shared_ptr<Exchange>(std::move(exchange));
}

std::shared_ptr<GroupState> ThreadWorld::group(const std::vector<int> &ranks,
                                               int nth) {
  std::lock_guard<std::mutex> lock(mutex_);
  std::shared_ptr<GroupState> &group = groups_[{ranks, nth}];
  if (!group)
    group = std::make_shared<GroupState>();
  return group;
}

void ThreadWorld::fail(int rank, const Status &reason) {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    if (failedRank_ >= 0)
      return;
    failedRank_ = rank;
    failure_ = reason;
    failed_.store(true, std::memory_order_seq_cst);
  }
  for (Bell &bell : bells_)
    bell.ring();
}

int ThreadWorld::failedRank() {
  std::lock_guard<std::mutex> lock(mutex_);
  return failedRank_;
}

Status ThreadWorld::failure() {
  std::lock_guard<std::mutex> lock(mutex_);
  return failure_;
}
