//===- Exchange.h - Shares exchanges between ranks of one process ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// ThreadTransport.h explains the idea. This file has the exchanges, the world
// that matches the starts of all parties, and the bells that wake sleeping
// ranks.
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

/// Pauses the core in a loop that waits.
inline void pauseCore() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#else
  std::this_thread::yield();
#endif
}

/// Wakes a rank when something has changed for it; each rank has one.
class Bell {
public:
  /// Returns the count that `await` compares with.
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

/// An exchange between `parties` ranks. Subclasses define its tasks.
class Exchange {
public:
  Exchange(ThreadWorld &world, std::vector<int> parties)
      : world_(world), parties_(std::move(parties)),
        missing_(static_cast<int>(parties_.size())) {}
  virtual ~Exchange() = default;

  /// Notes that one more party has left its pointers (under the world's lock);
  /// returns true for the last.
  bool arrive() { return --missing_ == 0; }
  /// Lets all parties begin, because the tasks are known. The last to arrive
  /// calls it, outside the lock.
  void open();
  /// Claims and runs tasks until none is left to claim; returns true when all
  /// are done.
  bool advance();
  bool isDone() const {
    return isOpen_.load(std::memory_order_acquire) &&
           unfinished_.load(std::memory_order_acquire) == 0;
  }
  /// Returns when no task is running; after a failure none will start.
  void awaitClaims() const;

protected:
  // Called after all parties have arrived.
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

  // Set by the parties, which both know the size by then. The sizes are equal.
  std::vector<Strip> source, target;
  int32_t addedAs = kReplaces;
  int64_t bytes = 0;
  bool isSend = false; ///< the sender came first

protected:
  int64_t taskCount() const override;
  int64_t totalBytes() const override { return bytes; }
  void run(int64_t task) override;
};

/// The tasks of one collective.
class CollectiveWork {
public:
  /// `in` and `out` have `size` pointers, by index in the group.
  CollectiveWork(const Collective &shape, int size, const void **in, void **out)
      : shape(shape), in(in), out(out), size_(size) {}

  Collective shape; ///< of the first to arrive; pointers are not used
  const void **in;
  void **out;

  int64_t taskCount() const { return lanes() * pieces(); }
  void run(int64_t task);

private:
  // Tasks are [lane][piece]. A lane has one pair of rows. all_reduce has one
  // lane, reduce_scatter one per target, all_gather one per source, and
  // all_to_all one per (source, target).
  int64_t lanes() const;
  int64_t laneBytes() const;
  int64_t pieces() const;

  int size_;
};

/// Collectives that ranks start as one. Its tasks are those of all the
/// collectives, one after another.
class CollectiveExchange : public Exchange {
public:
  CollectiveExchange(ThreadWorld &world, const std::vector<int> &ranks,
                     const std::vector<Collective> &collectives);

  /// Leaves the pointers of the rank at `index`; fails if it calls different
  /// collectives.
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

/// State of the groups that several ranks made of one list of ranks.
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
  /// Returns true if ranks may spin a little before they sleep.
  bool spins() const { return spins_; }

  /// Leaves one side of a message; the exchange opens when both sides have
  /// arrived.
  StatusOr<std::shared_ptr<Exchange>> message(int from, int to, int32_t tag,
                                              bool isSend,
                                              std::vector<Strip> strips,
                                              int64_t bytes, int32_t addedAs);
  /// Leaves the side of the rank at `index` of the group's exchange `number`.
  StatusOr<std::shared_ptr<Exchange>>
  collective(GroupState &group, const std::vector<int> &ranks, int index,
             int64_t number, const std::vector<Collective> &collectives);
  /// Returns the group that a rank makes as its `nth` group of these ranks.
  std::shared_ptr<GroupState> group(const std::vector<int> &ranks, int nth);

  bool hasFailed() const { return failed_.load(std::memory_order_seq_cst); }
  /// Keeps the first failure and wakes all ranks.
  void fail(int rank, const Status &reason);
  /// Valid after `hasFailed`.
  int failedRank();
  Status failure();

private:
  /// Locks after spinning. Ranks come at the same moment, each for less than a
  /// microsecond. A mutex alone would put one of them to sleep for tens of
  /// microseconds.
  std::unique_lock<std::mutex> lockSpinning();

  std::vector<Bell> bells_;
  const bool spins_;
  std::atomic<bool> failed_{false};

  std::mutex mutex_; ///< protects all members below
  std::unordered_map<uint64_t, std::deque<std::shared_ptr<MessageExchange>>>
      unmatched_; ///< by sender, receiver and tag
  std::map<std::pair<std::vector<int>, int>, std::shared_ptr<GroupState>>
      groups_;
  int failedRank_ = -1;
  Status failure_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_THREADS_EXCHANGE_H
