//===- Transport.h - Messages and exchanges between ranks -------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every rank has one `Transport`, its end of all wires. An exchange of data is
// *started*, which returns a ticket at once, and later *waited* for. Backends
// are folders beside this file; the suite in test/runtime/transport states in
// tests what holds for each of them.
//
//   Ticket sent = *transport.startSend(1, tag, gradients, bytes, stream);
//   ... compute ...
//   DYNA_RETURN_IF_ERROR(transport.wait(sent, stream, transport.deadline()));
//
// Order. Messages of one rank to another with one tag arrive in the order in
// which both sides started them. Collectives of one group match in the order
// started. Nothing else is ordered: different tags, directions and groups may
// be started and waited for in any order on any rank. Plans do without that
// last freedom (P11 in runtime/plan/verify/PlanVerifier.h), so that a backend which
// carries out what a rank starts one after another can run every plan; such a
// backend says in its conformance suite that it lacks the rest.
//
// Progress. There is one engine, and it is this: a list of started operations,
// each a small state machine that can `advance` without blocking. Whoever waits
// for one advances all of its own until that one is done. So a rank that is
// blocked on a message still does its share of a collective it has started, and
// no legal plan hangs. There are no helper threads: between waits, kernels that
// begin advance what was started (`dyna_progress`).
//
// Memory. A buffer given to a start belongs to the transport until the wait has
// returned, with or without an error. Who leaves early calls `abort` first.
//
// Failure is final. When a wait or a start fails in any other way than by its
// arguments, or `abort` is called, the rank's operations are withdrawn and all
// ranks are told: everybody's pending and later waits end with PeerFailed and
// the name and text of the rank that failed first. There is no way back; the
// job restarts from a checkpoint.
//
// Streams. `stream` is what `dyna_context::stream` holds. Work starts after
// what the stream was given before the start; what the stream is given after
// the wait sees the result. Host backends have finished when wait returns.
//
// Threads. A Transport and its groups are used by one thread at a time.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_TRANSPORT_H
#define DYNA_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/abi/Abi.h"
#include "runtime/base/Status.h"
#include "runtime/base/Strips.h"
#include "runtime/transport/Collective.h"

#include <array>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

namespace dyna {

class Group;

/// Names a started operation on the rank that started it.
enum class Ticket : int64_t {};

/// What a rank has handed over for others, by its own count.
struct Traffic {
  int64_t messages = 0, messageBytes = 0;
  std::array<int64_t, kCollectiveKinds> collectives = {};
  /// How often this rank started collectives: several may be started as one.
  int64_t collectiveCalls = 0;
  /// Bytes that left this rank, each sent once to every rank that needs it (see
  /// Collective::sentBytes).
  std::array<int64_t, kCollectiveKinds> collectiveBytes = {};
  /// Bytes of the whole tensors of these collectives, whatever part of them a
  /// rank has.
  int64_t wholeBytes = 0;

  /// Adds `times` as much as there was of `other`.
  void add(const Traffic &other, int64_t times = 1);
};

class Transport {
public:
  using Clock = std::chrono::steady_clock;
  using Deadline = Clock::time_point;

  virtual ~Transport();
  Transport(const Transport &) = delete;
  Transport &operator=(const Transport &) = delete;

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// Starts a message of `bytes` (may be 0) to or from another rank; tags are
  /// 0 to kLargestTag. A message of another size than the receive expects
  /// fails, with both sizes.
  StatusOr<Ticket> startSend(int peer, int32_t tag, const void *data,
                             int64_t bytes, void *stream);
  StatusOr<Ticket> startReceive(int peer, int32_t tag, void *data,
                                int64_t bytes, void *stream);
  /// The same of rows (Strips.h), which may be cut in another way at the other
  /// end. What comes replaces what is there, or is added to it (`addedAs`, a
  /// DYNA_ELEMENT_* of which all rows have whole elements). Messages of one tag
  /// between two ranks are of rows at both ends, or at neither.
  StatusOr<Ticket> startSend(int peer, int32_t tag, std::vector<Strip> strips,
                             void *stream);
  StatusOr<Ticket> startReceive(int peer, int32_t tag,
                                std::vector<Strip> strips, void *stream,
                                int32_t addedAs = kReplaces);
  static constexpr int32_t kLargestTag = (1 << 22) - 1;

  /// Blocks until the operation is done, or fails with DeadlineExceeded,
  /// PeerFailed or the operation's own failure. Once per ticket.
  Status wait(Ticket ticket, void *stream, Deadline deadline);
  /// Advances what was started, without blocking.
  Status progress();

  /// A group of `ranks`, in this order, of which this rank is one. All of them
  /// call it; ranks that share several groups create those in one order. The
  /// group must not outlive the transport.
  StatusOr<std::unique_ptr<Group>> createGroup(const std::vector<int> &ranks,
                                               Deadline deadline);

  /// This rank gives up because of `reason`: see "Failure is final".
  void abort(const Status &reason);
  /// Says goodbye, as the destructor does: for owners of buffers that go first.
  /// After a failure others may still read what was sent to them, so those must
  /// live until this returns. Nothing can be started any more.
  virtual void leave() { close(); }
  /// Ok, or why this transport can no longer be used.
  const Status &failure() const { return failure_; }

  /// Tells the other processes, once, that the job is asked to stop. They hear of
  /// it while they exchange; it fails nothing.
  void tellStop();
  /// Returns true if another process has announced a stop.
  bool hasHeardStop() const { return hasHeardStop_; }

  /// How many ranks share each core that this one may use, itself included:
  /// what it leaves to others of the machine's threads.
  virtual int ranksPerCore() const = 0;

  /// How long waits last that are given no deadline of their own: those of
  /// compiled code. Ten minutes unless set.
  void setTimeout(Clock::duration timeout) { timeout_ = timeout; }
  Deadline deadline() const { return Clock::now() + timeout_; }

  const Traffic &traffic() const { return traffic_; }
  bool hasStarted() const { return !started_.empty(); }

  /// Time that compiled code spent here: an exchange from its start to its
  /// end, or what was started before making progress.
  struct Spent {
    const char *what; ///< a constant
    Clock::time_point begin, end;
  };
  /// Where to note it from now on; null: nowhere.
  void noteTime(std::vector<Spent> *spent) { spent_ = spent; }
  void note(const Spent &spent) {
    if (spent_)
      spent_->push_back(spent);
  }

protected:
  Transport(int rank, int ranks) : rank_(rank), ranks_(ranks) {}

  /// A started operation; see "Progress".
  class Operation {
  public:
    virtual ~Operation() = default;
    /// Goes on as far as is possible without blocking; true when done.
    virtual StatusOr<bool> advance() = 0;
    /// Orders `stream` behind the finished operation.
    virtual Status finish(void *stream) { return Status::ok(); }
    /// After a failure: returns when nobody touches its buffers any more.
    virtual void withdraw() = 0;
  };
  using MadeOperation = StatusOr<std::unique_ptr<Operation>>;

  /// One side of a message.
  struct Message {
    int peer = 0;
    int32_t tag = 0;
    std::vector<Strip> strips; ///< one row, unless it `isOfRows`
    bool isOfRows = false;
    int32_t addedAs = kReplaces;
    int64_t bytes = 0; ///< of all strips

    void *data() const { return strips.front().data; }
  };

  // What a backend provides. Arguments have been checked.
  virtual MadeOperation makeSend(Message message, void *stream) = 0;
  virtual MadeOperation makeReceive(Message message, void *stream) = 0;
  virtual StatusOr<std::unique_ptr<Group>>
  makeGroup(std::vector<int> ranks, int index, Deadline deadline) = 0;
  /// Called before each round of advances; fails when another rank has.
  virtual Status poll() = 0;
  /// Called when a wait that `began` then must go on: sleeps until something
  /// may have happened since the last `poll`, at most to the deadline.
  virtual void idle(Clock::time_point began, Deadline deadline) = 0;
  /// Makes the `poll` of all other ranks fail.
  virtual void announce(const Status &reason) = 0;
  /// Carries `tellStop` to other processes, where there are any; `poll` there
  /// calls `hearStop`.
  virtual void announceStop() {}
  void hearStop() { hasHeardStop_ = true; }
  /// For the destructor of a backend, while its overrides still exist: fails
  /// the others when operations are not done.
  void close();

  /// "rank 2 failed: ...", as other ranks see it.
  static Status peerFailure(int rank, const std::string &text);
  /// "rank 2: ...", as this rank says it, once.
  std::string ofThisRank(const std::string &text) const;

private:
  friend class Group;

  struct Description {
    const char *direction = nullptr; ///< null for a collective
    int peer = 0;
    int32_t tag = 0;
    int64_t bytes = 0;
    std::vector<Collective> collectives;
    std::shared_ptr<const std::vector<int>> group;
    std::string text() const;
  };
  struct Started {
    Ticket ticket;
    bool isDone;
    std::unique_ptr<Operation> operation;
    Description description;
  };

  StatusOr<Ticket> start(bool isSend, Message message, void *stream);
  /// Sums up the bytes of a message, and names it.
  StatusOr<Description> checkMessage(bool isSend, Message &message) const;
  StatusOr<Ticket> add(MadeOperation operation, Description description);
  Status advanceAll();
  Status fail(const std::string &what, const Status &status);
  void settle(Status failure);

  const int rank_, ranks_;
  Clock::duration timeout_ = std::chrono::minutes(10);
  std::vector<Started> started_; ///< by ticket
  int64_t nextTicket_ = 1;
  bool hasToldStop_ = false, hasHeardStop_ = false;
  Status failure_;
  Traffic traffic_;
  std::vector<Spent> *spent_ = nullptr;
};

/// Ranks that exchange together. Lives no longer than its transport; operations
/// that it started must have been waited for before it goes.
class Group {
public:
  virtual ~Group() = default;
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

  int size() const { return static_cast<int>(ranks_->size()); }
  /// This rank's place in the group.
  int index() const { return index_; }
  const std::vector<int> &ranks() const { return *ranks_; }
  Transport &transport() const { return transport_; }

  /// Starts this rank's side of an exchange, or of several as one: ranks meet
  /// once for all of them, and none may write what another reads or writes.
  /// Every rank of the group starts the same ones, with the same sizes, in the
  /// same order.
  StatusOr<Ticket> start(std::vector<Collective> collectives, void *stream);
  StatusOr<Ticket> start(const Collective &collective, void *stream) {
    return start(std::vector<Collective>{collective}, stream);
  }
  /// Returns whether any rank of the group says so; all of them ask together. Not
  /// counted as traffic: it is no part of a plan.
  StatusOr<bool> any(bool here, void *stream);

  /// Cuts this rank's part out of `whole` (a ReduceScatter without the sum).
  virtual Status slice(const Collective &whole, void *stream);

protected:
  Group(Transport &transport, std::vector<int> ranks, int index)
      : transport_(transport), index_(index),
        ranks_(std::make_shared<const std::vector<int>>(std::move(ranks))) {}

  using Operation = Transport::Operation;
  using MadeOperation = Transport::MadeOperation;
  /// Of at least one; arguments have been checked.
  virtual MadeOperation make(const std::vector<Collective> &collectives,
                             void *stream) = 0;

private:
  /// `start` of checked collectives, without counting them.
  StatusOr<Ticket> startUncounted(std::vector<Collective> collectives,
                                  void *stream);

  Transport &transport_;
  const int index_;
  const std::shared_ptr<const std::vector<int>> ranks_;
};

/// The group as compiled code gets it; null is a group of one.
dyna_group toAbi(Group *group);

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_TRANSPORT_H
