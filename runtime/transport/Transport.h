//===- Transport.h - Sends messages and collectives between ranks ---------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Every rank has one `Transport`, its end of all connections. An exchange of
// data is *started*, which returns a ticket at once, and later *waited* for.
// Backends are folders beside this file. The suite in test/runtime/transport
// tests the guarantees of each of them.
//
//     Ticket sent = *transport.startSend(1, tag, gradients, bytes, stream);
//     ... compute ...
//     DYNA_RETURN_IF_ERROR(transport.wait(sent, stream, transport.deadline()));
//
// Order. Messages of one rank to another with one tag arrive in the order in
// which both sides started them. Collectives of one group match in the order
// started. Nothing else is ordered: different tags, directions and groups may
// be started and waited for in any order on any rank.
//
// Plans do not use that last freedom (P11 in
// runtime/plan/verify/PlanVerifier.h). So a backend that carries out a rank's
// operations one after another can run every plan. Its conformance suite states
// that it lacks the rest.
//
// Progress. A list of started operations is the only engine. Each is a small
// state machine that can `advance` without blocking. A rank that waits for one
// operation advances all of its own until that one is done. So a rank that is
// blocked on a message still does its share of a started collective, and no
// legal plan hangs. There are no helper threads. Between waits, kernels advance
// started operations when they begin (`dyna_progress`).
//
// Memory. A buffer given to a start belongs to the transport until the wait has
// returned, with or without an error. To free it earlier, call `abort` first.
//
// Failure is final. It begins if `abort` is called, or if a wait or a start
// fails, except by its arguments. The rank's operations are withdrawn and all
// ranks are told. All pending and later waits end with PeerFailed, and with the
// name and text of the rank that failed first. There is no way back: the job
// restarts from a checkpoint.
//
// Streams. `stream` is what `dyna_context::stream` holds. An exchange starts
// after all work that the stream was given before the start. Work that the
// stream is given after the wait sees the result. Host backends have finished
// when wait returns.
//
// Threads. One thread at a time uses a Transport and its groups.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_TRANSPORT_H
#define DYNA_RUNTIME_TRANSPORT_TRANSPORT_H

#include "runtime/abi/Abi.h"
#include "runtime/base/error/Status.h"
#include "runtime/base/wire/Strips.h"
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

/// Counts of the data that a rank has sent, by its own count.
struct Traffic {
  int64_t messages = 0, messageBytes = 0;
  std::array<int64_t, kCollectiveKinds> collectives = {};
  /// Number of starts of collectives; several may be started as one.
  int64_t collectiveCalls = 0;
  /// Bytes that left this rank, each counted once for every rank that needs it
  /// (see Collective::sentBytes).
  std::array<int64_t, kCollectiveKinds> collectiveBytes = {};
  /// Bytes of the whole tensors of these collectives, whichever part a rank
  /// has.
  int64_t wholeBytes = 0;

  /// Adds `other`, `times` times.
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

  /// Start a message of `bytes` (may be 0) to or from another rank; tags are 0
  /// to kLargestTag. A message fails, with both sizes, if its size is not the
  /// size that the receive expects.
  StatusOr<Ticket> startSend(int peer, int32_t tag, const void *data,
                             int64_t bytes, void *stream);
  StatusOr<Ticket> startReceive(int peer, int32_t tag, void *data,
                                int64_t bytes, void *stream);
  /// Start a message of rows (Strips.h); the other end may cut it in another
  /// way. Received rows replace the target, or are added to it (`addedAs`, a
  /// DYNA_ELEMENT_* of which all rows have whole elements). Messages of one tag
  /// between two ranks are of rows at both ends, or at neither.
  StatusOr<Ticket> startSend(int peer, int32_t tag, std::vector<Strip> strips,
                             void *stream);
  StatusOr<Ticket> startReceive(int peer, int32_t tag,
                                std::vector<Strip> strips, void *stream,
                                int32_t addedAs = kReplaces);
  static constexpr int32_t kLargestTag = (1 << 22) - 1;

  /// Blocks until the operation is done, or fails with DeadlineExceeded,
  /// PeerFailed or the operation's own failure. Call it once per ticket.
  Status wait(Ticket ticket, void *stream, Deadline deadline);
  /// Advances started operations, without blocking.
  Status progress();

  /// Creates a group of `ranks`, in this order; this rank must be one of them.
  /// All of them call it. Ranks that share several groups create those in one
  /// order. The group must not outlive the transport.
  StatusOr<std::unique_ptr<Group>> createGroup(const std::vector<int> &ranks,
                                               Deadline deadline);

  /// Ends this rank because of `reason`: see "Failure is final".
  void abort(const Status &reason);
  /// Says goodbye, as the destructor does, for owners of buffers that are
  /// destroyed first. After a failure others may still read what was sent to
  /// them, so those buffers must live until this returns. Nothing can be
  /// started any more.
  virtual void leave() { close(); }
  /// Returns ok, or the reason why this transport can no longer be used.
  const Status &failure() const { return failure_; }

  /// Tells the other processes, once, that the job is to stop. They learn of it
  /// while they exchange; it fails nothing.
  void tellStop();
  /// Returns true if another process has announced a stop.
  bool hasHeardStop() const { return hasHeardStop_; }

  /// Returns how many ranks share each core that this rank may use, itself
  /// included. A rank leaves threads of the machine to the others accordingly.
  virtual int ranksPerCore() const = 0;

  /// Sets the length of waits without a deadline of their own: those of
  /// compiled code. The default is ten minutes.
  void setTimeout(Clock::duration timeout) { timeout_ = timeout; }
  Deadline deadline() const { return Clock::now() + timeout_; }

  const Traffic &traffic() const { return traffic_; }
  bool hasStarted() const { return !started_.empty(); }

  /// Time that compiled code spent here: an exchange from its start to its end,
  /// or progress on operations that were started before.
  struct Spent {
    const char *what; ///< a constant
    Clock::time_point begin, end;
  };
  /// Sets where times are recorded from now on; null: nowhere.
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
    /// Goes on as far as is possible without blocking; returns true when done.
    virtual StatusOr<bool> advance() = 0;
    /// Orders `stream` after the finished operation.
    virtual Status finish(void *stream) { return Status::ok(); }
    /// Called after a failure: returns when nothing accesses its buffers any
    /// more.
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

  // Functions of a backend. Arguments have been checked.
  virtual MadeOperation makeSend(Message message, void *stream) = 0;
  virtual MadeOperation makeReceive(Message message, void *stream) = 0;
  virtual StatusOr<std::unique_ptr<Group>>
  makeGroup(std::vector<int> ranks, int index, Deadline deadline) = 0;
  /// Called before each round of advances; fails if another rank has failed.
  virtual Status poll() = 0;
  /// Called if a wait since `began` must go on. Sleeps until something may have
  /// happened since the last `poll`, but not beyond the deadline.
  virtual void idle(Clock::time_point began, Deadline deadline) = 0;
  /// Makes the `poll` of all other ranks fail.
  virtual void announce(const Status &reason) = 0;
  /// Sends `tellStop` to other processes, if there are any; `poll` there calls
  /// `hearStop`.
  virtual void announceStop() {}
  void hearStop() { hasHeardStop_ = true; }
  /// Closes the transport, from the destructor of a backend, while its
  /// overrides still exist. Makes the other ranks fail if operations are not
  /// done.
  void close();

  /// Returns "rank 2 failed: ...", as other ranks report it.
  static Status peerFailure(int rank, const std::string &text);
  /// Returns "rank 2: ...", as this rank reports it, once.
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

/// Ranks that exchange together. It must not outlive its transport. Wait for
/// all operations that it started before it is destroyed.
class Group {
public:
  virtual ~Group() = default;
  Group(const Group &) = delete;
  Group &operator=(const Group &) = delete;

  int size() const { return static_cast<int>(ranks_->size()); }
  /// Returns this rank's index in the group.
  int index() const { return index_; }
  const std::vector<int> &ranks() const { return *ranks_; }
  Transport &transport() const { return transport_; }

  /// Starts this rank's side of an exchange, or of several as one. Ranks meet
  /// once for all of them, so none may write what another reads or writes.
  /// Every rank of the group starts the same ones, with the same sizes, in the
  /// same order.
  StatusOr<Ticket> start(std::vector<Collective> collectives, void *stream);
  StatusOr<Ticket> start(const Collective &collective, void *stream) {
    return start(std::vector<Collective>{collective}, stream);
  }
  /// Returns true if `here` is true on any rank of the group; all of them call
  /// it. It is not counted as traffic, because it is no part of a plan.
  StatusOr<bool> any(bool here, void *stream);

  /// Cuts this rank's part out of `whole` (a ReduceScatter without the sum).
  virtual Status slice(const Collective &whole, void *stream);

protected:
  Group(Transport &transport, std::vector<int> ranks, int index)
      : transport_(transport), index_(index),
        ranks_(std::make_shared<const std::vector<int>>(std::move(ranks))) {}

  using Operation = Transport::Operation;
  using MadeOperation = Transport::MadeOperation;
  /// Makes the operation of at least one collective; arguments have been
  /// checked.
  virtual MadeOperation make(const std::vector<Collective> &collectives,
                             void *stream) = 0;

private:
  /// Starts checked collectives without counting them.
  StatusOr<Ticket> startUncounted(std::vector<Collective> collectives,
                                  void *stream);

  Transport &transport_;
  const int index_;
  const std::shared_ptr<const std::vector<int>> ranks_;
};

/// Returns the group in the form for compiled code; null is a group of one.
dyna_group toAbi(Group *group);

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_TRANSPORT_H
