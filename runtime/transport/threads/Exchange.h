//===- Exchange.h - What ranks of one process share -------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// See ThreadTransport.h for the idea. Here: the exchanges, the world that
// matches the parties' starts, and the bells that wake sleeping ranks.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_THREADS_EXCHANGE_H
#define DYNA_RUNTIME_TRANSPORT_THREADS_EXCHANGE_H

#include "runtime/transport/Transport.h"

#include <atomic>
#include <condition_variable>
#include <deque>
#include <map>
#include <mutex>
#include <thread>
#include <unordered_map>

namespace dyna {

/// A turn of a loop that waits.
inline void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// One per rank: rung when something has changed for it.
class Bell {
public:
  /// What `await` compares with.
  uint64_t rings() const { return rings_.load(std::memory_order_seq_cst); }
  void ring();
  /// Returns when the bell has rung since `rings` was `seen`, or at the
  /// deadline. Sleeps, after a short spin if that is allowed.
  void await(uint64_t seen, Transport::Deadline deadline, bool maySpin);

private:
  std::atomic<uint64_t> rings_{0};
  std::atomic<bool> isSleeping_{false};
  std::mutex mutex_;
  std::condition_variable wake_;
};

class ThreadWorld;

/// Bytes of one task: long enough that claiming costs nothing, short enough
/// that a failing rank soon gets its buffers back.
constexpr int64_t kTaskBytes = 256 << 10;

/// An exchange between `parties` ranks. Subclasses know the work.
class Exchange {
public:
  Exchange(ThreadWorld &world, std::vector<int> parties)
      : world_(world), parties_(std::move(parties)),
        missing_(static_cast<int>(parties_.size())) {}
  virtual ~Exchange() = default;

  /// One more party has left its pointers (under the world's lock); true when
  /// it was the last.
  bool arrive() { return --missing_ == 0; }
  /// The work is known: lets everybody begin. Called by the last to arrive,
  /// outside the lock.
  void open();
  /// Claims and does tasks until none is left to claim; true when all are done.
  bool advance();
  bool isDone() const {
    return isOpen_.load(std::memory_order_acquire) &&
           unfinished_.load(std::memory_order_acquire) == 0;
  }
  /// Returns when no task is being done; none will be after a failure.
  void awaitClaims() const;

protected:
  // Asked once all parties have arrived.
  virtual int64_t taskCount() const = 0;
  virtual int64_t totalBytes() const = 0;
  virtual void run(int64_t task) = 0;
  const std::vector<int> &parties() const { return parties_; }

private:
  void ringParties();

  ThreadWorld &world_;
  const std::vector<int> parties_;
  int missing_;
  int64_t tasks_ = 0;
  std::atomic<bool> isOpen_{false};
  alignas(64) std::atomic<int64_t> next_{0};
  alignas(64) std::atomic<int64_t> unfinished_{0};
  std::atomic<int> working_{0};
};

class MessageExchange : public Exchange {
public:
  MessageExchange(ThreadWorld &world, int from, int to)
      : Exchange(world, {from, to}) {}

  // Set by the parties; both know the size by then, and it is the same.
  std::vector<Strip> source, target;
  int32_t addedAs = kReplaces;
  int64_t bytes = 0;
  bool isSend = false; ///< which side came first

protected:
  int64_t taskCount() const override;
  int64_t totalBytes() const override { return bytes; }
  void run(int64_t task) override;
};

/// The work of one collective.
class CollectiveWork {
public:
  /// `in` and `out` have `size` pointers, by place in the group.
  CollectiveWork(const Collective &shape, int size, const void **in, void **out)
      : shape(shape), in(in), out(out), size_(size) {}

  Collective shape; ///< of the first to arrive; pointers are not used
  const void **in;
  void **out;

  int64_t taskCount() const { return lanes() * pieces(); }
  void run(int64_t task);

private:
  // Tasks are [lane][piece]. A lane is what has one pair of rows: everything
  // for all_reduce, a target for reduce_scatter, a source for all_gather, a
  // (source, target) for all_to_all.
  int64_t lanes() const;
  int64_t laneBytes() const;
  int64_t pieces() const;

  int size_;
};

/// What ranks start as one: its tasks are those of all the collectives, one
/// after another.
class CollectiveExchange : public Exchange {
public:
  CollectiveExchange(ThreadWorld &world, const std::vector<int> &ranks,
                     const std::vector<Collective> &collectives);

  /// Leaves the pointers of the rank at `index`; fails if it calls others.
  Status join(int index, const std::vector<Collective> &collectives);

protected:
  int64_t taskCount() const override;
  int64_t totalBytes() const override;
  void run(int64_t task) override;

private:
  std::vector<CollectiveWork> works_;
  std::vector<const void *> ins_;
  std::vector<void *> outs_;
};

/// The groups that several ranks made of one list of ranks, in order.
struct GroupState {
  std::deque<std::shared_ptr<CollectiveExchange>> unmatched;
  int64_t firstUnmatched = 0; ///< number in the group's order
};

class ThreadWorld {
public:
  explicit ThreadWorld(int ranks)
      : bells_(static_cast<size_t>(ranks)),
        spins_(ranks <= static_cast<int>(std::thread::hardware_concurrency())) {
  }

  Bell &bell(int rank) { return bells_[static_cast<size_t>(rank)]; }
  /// Whether ranks may spin a little before they sleep.
  bool spins() const { return spins_; }

  /// Leaves one side of a message; the exchange is open when both have.
  StatusOr<std::shared_ptr<Exchange>> message(int from, int to, int32_t tag,
                                              bool isSend,
                                              std::vector<Strip> strips,
                                              int64_t bytes, int32_t addedAs);
  /// Leaves the side of the rank at `index` of the group's exchange `number`.
  StatusOr<std::shared_ptr<Exchange>>
  collective(GroupState &group, const std::vector<int> &ranks, int index,
             int64_t number, const std::vector<Collective> &collectives);
  /// The group that a rank makes as its `nth` of these ranks.
  std::shared_ptr<GroupState> group(const std::vector<int> &ranks, int nth);

  bool hasFailed() const { return failed_.load(std::memory_order_seq_cst); }
  /// Keeps the first failure and wakes everybody.
  void fail(int rank, const Status &reason);
  /// Valid once `hasFailed`.
  int failedRank();
  Status failure();

private:
  /// Ranks come here at the same moment, each for less than a microsecond: a
  /// mutex alone would put one of them to sleep for tens.
  std::unique_lock<std::mutex> lockSpinning();

  std::vector<Bell> bells_;
  const bool spins_;
  std::atomic<bool> failed_{false};

  std::mutex mutex_; ///< of all below
  std::unordered_map<uint64_t, std::deque<std::shared_ptr<MessageExchange>>>
      unmatched_; ///< by sender, receiver and tag
  std::map<std::pair<std::vector<int>, int>, std::shared_ptr<GroupState>>
      groups_;
  int failedRank_ = -1;
  Status failure_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_THREADS_EXCHANGE_H
