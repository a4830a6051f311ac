//===- Exchange.cpp - Shares exchanges between ranks of one process -------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/threads/Exchange.h"

#include "runtime/base/wire/Reduction.h"

#include <algorithm>
#include <cstring>
#include <thread>

using namespace dyna;

//===----------------------------------------------------------------------===//
// Bell
//===----------------------------------------------------------------------===//

void Bell::ring() {
  rings_.fetch_add(1, std::memory_order_seq_cst);
  // Either this sees that the other sleeps, or the other sees the ring.
  if (!isSleeping_.load(std::memory_order_seq_cst))
    return;
  std::lock_guard<std::mutex> lock(mutex_);
  wake_.notify_one();
}

/// A sleeping thread takes tens of microseconds to wake, a step's next message
/// often comes sooner.
static constexpr auto kSpinTime = std::chrono::microseconds(50);

void Bell::await(uint64_t seen, Transport::Deadline deadline, bool maySpin) {
  if (maySpin) {
    auto end = Transport::Clock::now() + kSpinTime;
    do {
      for (int i = 0; i < 32; ++i) {
        if (rings() != seen)
          return;
        pauseCore();
      }
      // The thread that this one waits for may be waiting for this core.
      std::this_thread::yield();
    } while (Transport::Clock::now() < end);
  }
  std::unique_lock<std::mutex> lock(mutex_);
  isSleeping_.store(true, std::memory_order_seq_cst);
  wake_.wait_until(lock, deadline, [&] { return rings() != seen; });
  isSleeping_.store(false, std::memory_order_seq_cst);
}

//===----------------------------------------------------------------------===//
// Exchange
//===----------------------------------------------------------------------===//

void Exchange::ringParties() {
  for (int rank : parties_)
    world_.bell(rank).ring();
}

void Exchange::open() {
  tasks_ = taskCount();
  unfinished_.store(tasks_, std::memory_order_relaxed);
  isOpen_.store(true, std::memory_order_release);
  // The rank that opens the exchange does a small amount of work by itself,
  // before it wakes the others.
  if (tasks_ > 0 && totalBytes() <= kTaskBytes)
    advance();
  else
    ringParties();
}

bool Exchange::advance() {
  if (!isOpen_.load(std::memory_order_acquire))
    return false;
  while (next_.load(std::memory_order_relaxed) < tasks_) {
    // A failing rank first sets the flag and then looks at `working_`: either
    // it waits for this task, or this sees the flag.
    working_.fetch_add(1, std::memory_order_seq_cst);
    if (world_.hasFailed()) {
      working_.fetch_sub(1, std::memory_order_seq_cst);
      return false;
    }
    int64_t task = next_.fetch_add(1, std::memory_order_relaxed);
    if (task < tasks_)
      run(task);
    working_.fetch_sub(1, std::memory_order_seq_cst);
    if (task < tasks_ &&
        unfinished_.fetch_sub(1, std::memory_order_acq_rel) == 1)
      ringParties();
  }
  return isDone();
}

void Exchange::awaitClaims() const {
  while (working_.load(std::memory_order_seq_cst) > 0)
    std::this_thread::yield();
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

int64_t MessageExchange::taskCount() const {
  return (bytes + kTaskBytes - 1) / kTaskBytes;
}

void MessageExchange::run(int64_t task) {
  int64_t begin = task * kTaskBytes;
  StripCursor from(source, begin), to(target, begin);
  forEachRun(from, to, std::min(kTaskBytes, bytes - begin),
             [this](const char *read, char *written, int64_t run) {
               placeRun(addedAs, read, written, run);
             });
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

CollectiveExchange::CollectiveExchange(
    ThreadWorld &world, const std::vector<int> &ranks,
    const std::vector<Collective> &collectives)
    : Exchange(world, ranks) {
  size_t size = ranks.size();
  works_.reserve(collectives.size());
  ins_.resize(collectives.size() * size);
  outs_.resize(collectives.size() * size);
  for (size_t i = 0; i < collectives.size(); ++i)
    works_.emplace_back(collectives[i], static_cast<int>(size),
                        ins_.data() + i * size, outs_.data() + i * size);
}

Status CollectiveExchange::join(int index,
                                const std::vector<Collective> &collectives) {
  bool agrees = works_.size() == collectives.size();
  for (size_t i = 0; agrees && i < works_.size(); ++i)
    agrees = works_[i].shape.agreesWith(collectives[i]);
  if (!agrees) {
    std::vector<Collective> shapes;
    for (const CollectiveWork &work : works_)
      shapes.push_back(work.shape);
    return Status::invalidArgument("another rank of the group calls " +
                                   describeAll(shapes));
  }
  for (size_t i = 0; i < works_.size(); ++i) {
    works_[i].in[index] = collectives[i].in;
    works_[i].out[index] = collectives[i].out;
  }
  return Status::ok();
}

int64_t CollectiveExchange::taskCount() const {
  int64_t tasks = 0;
  for (const CollectiveWork &work : works_)
    tasks += work.taskCount();
  return tasks;
}

int64_t CollectiveExchange::totalBytes() const {
  int64_t bytes = 0;
  for (const CollectiveWork &work : works_)
    bytes += work.shape.wholeElements() * elementBytes(work.shape.element);
  return bytes;
}

void CollectiveExchange::run(int64_t task) {
  for (CollectiveWork &work : works_) {
    int64_t own = work.taskCount();
    if (task < own)
      return work.run(task);
    task -= own;
  }
}

int64_t CollectiveWork::lanes() const {
  switch (shape.kind) {
  case CollectiveKind::AllReduce:
    return 1;
  case CollectiveKind::AllGather:
  case CollectiveKind::ReduceScatter:
    return size_;
  case CollectiveKind::AllToAll:
    return int64_t(size_) * size_;
  case CollectiveKind::Barrier:
    return 0;
  }
  return 0;
}

/// Returns the bytes of the longest lane. It is the first one, because parts
/// never grow with the index.
int64_t CollectiveWork::laneBytes() const {
  if (shape.kind == CollectiveKind::AllReduce)
    return shape.inBytes(size_, 0);
  return shape.sourceRows(size_, 0, 0).totalBytes();
}

int64_t CollectiveWork::pieces() const {
  return (laneBytes() + kTaskBytes - 1) / kTaskBytes;
}

void CollectiveWork::run(int64_t task) {
  int lane = static_cast<int>(task / pieces());
  int64_t begin = task % pieces() * kTaskBytes;
  int from = lane, to = lane;
  if (shape.kind == CollectiveKind::AllToAll)
    from = lane / size_, to = lane % size_;
  Rows source = shape.sourceRows(size_, from, to);
  Rows target = shape.targetRows(size_, from, to);
  if (shape.kind == CollectiveKind::AllReduce) {
    source = Rows{0, 1, 0, 1, 0, shape.inBytes(size_, 0)};
    target = source;
  }
  mergeRuns(source, target);
  int64_t end = std::min(begin + kTaskBytes, source.totalBytes());

  if (shape.isReduction()) {
    bool isScatter = shape.kind == CollectiveKind::ReduceScatter;
    int64_t width = elementBytes(shape.element);
    std::vector<const void *> sources(static_cast<size_t>(size_));
    std::vector<void *> targets(isScatter ? 1 : sources.size());
    forEachRun(
        source, target, begin, end,
        [&](int64_t at, int64_t result, int64_t bytes) {
          for (size_t i = 0; i < sources.size(); ++i)
            sources[i] = static_cast<const char *>(in[i]) + at;
          for (size_t i = 0; i < targets.size(); ++i)
            targets[i] =
                static_cast<char *>(isScatter ? out[to] : out[i]) + result;
          reduceElements(shape.element, shape.reduction, sources.data(), size_,
                         targets.data(), static_cast<int>(targets.size()),
                         bytes / width);
        });
    return;
  }
  bool isGather = shape.kind == CollectiveKind::AllGather;
  for (int rank = isGather ? 0 : to; rank < (isGather ? size_ : to + 1); ++rank)
    forEachRun(source, target, begin, end,
               [&](int64_t at, int64_t result, int64_t bytes) {
                 const char *read = static_cast<const char *>(in[from]) + at;
                 char *written = static_cast<char *>(out[rank]) + result;
                 // A rank's own part may lie in place already.
                 if (read != written)
                   memcpy(written, read, static_cast<size_t>(bytes));
               });
}
