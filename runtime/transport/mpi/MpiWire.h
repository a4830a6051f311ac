//===- MpiWire.h - Sends and polls the messages of one process --*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// This file has the communicators and the two halves of a message. Nothing here
// blocks.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_MPI_MPIWIRE_H
#define DYNA_RUNTIME_TRANSPORT_MPI_MPIWIRE_H

#include "runtime/transport/Scratch.h"
#include "runtime/transport/Transport.h"

#include <deque>
#include <map>
#include <mpi.h>
#include <optional>
#include <tuple>
#include <utility>

namespace dyna {

/// Returns ok, or a DeviceError with MPI's text.
Status checkMpi(int code, const char *function);

/// MPI counts in int: longer messages are sent in pieces.
constexpr int64_t kLongestPiece = int64_t(1) << 30;

/// The communicators of one transport.
class MpiWire {
public:
  /// Communicator of a message.
  enum Channel { Messages = 0, Groups = 1, Control = 2, kChannels = 3 };

  ~MpiWire();
  /// Opens the communicators; all processes call it together.
  Status open();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  MPI_Comm comm(Channel channel) const { return comms_[channel]; }
  /// Returns true if this machine runs more ranks than it has cores.
  bool isCrowded() const { return isCrowded_; }
  /// Returns how many ranks of this machine may use a core of this one's, on
  /// average.
  int ranksPerCore() const { return ranksPerCore_; }
  Scratch &scratch() { return scratch_; }

  /// Sends the text to all other ranks.
  void announce(const std::string &text);
  /// Tells all other ranks that the job is asked to stop.
  void announceStop();
  /// Returns the first text that another rank has announced, and that rank.
  std::optional<std::pair<int, std::string>> heard();
  /// Returns true if `heard` has found that another rank announced a stop.
  bool hasHeardStop() const { return hasHeardStop_; }
  /// Tells all other ranks, after a failure, that this one still runs.
  void sayPresent();
  /// Returns the ranks that have neither announced anything nor said that they
  /// run, as far as `heard` has read.
  std::vector<int> absent() const;
  /// Meets all other ranks for the last time; returns false if the deadline
  /// passes before they have come.
  bool sayGoodbye(Transport::Deadline deadline);
  /// Returns the deadline, after a failure, until which messages that have
  /// begun to arrive may go on.
  Transport::Deadline withdrawal();

  /// Channel, peer and tag of a message.
  using Key = std::tuple<Channel, int, int>;
  /// Messages of one direction by key, in the order started.
  using Turns = std::map<Key, std::deque<const void *>>;
  /// Receives that have not seen their whole message, and messages of rows
  /// whose pieces MPI does not have yet.
  Turns unseen, unsent;
  /// Number of messages or pieces that have arrived or left. A waiting rank is
  /// not idle as long as this changes.
  int64_t moves = 0;

private:
  /// Kinds of messages on the control channel.
  enum ControlTag { Failure = 0, Stop = 1, Present = 2 };

  Status countNeighbours();
  void sendToAll(const char *data, size_t bytes, ControlTag tag);

  MPI_Comm comms_[kChannels] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
  int rank_ = 0, ranks_ = 0;
  bool isCrowded_ = false;
  int ranksPerCore_ = 1;
  std::optional<Transport::Deadline> withdrawal_;
  Scratch scratch_;
  std::string announced_;
  bool hasHeardStop_ = false;
  std::vector<bool> isPresent_; ///< by rank
  std::vector<MPI_Request> announcements_;
};

/// A position among the turns of a key. Only the first may look for a message,
/// or give more of it to MPI.
class MpiTurn {
public:
  MpiTurn(MpiWire::Turns &turns, MpiWire::Key key)
      : turns_(turns), key_(std::move(key)) {
    turns_[key_].push_back(this);
  }
  ~MpiTurn() { pass(); }
  MpiTurn(const MpiTurn &) = delete;
  MpiTurn &operator=(const MpiTurn &) = delete;

  bool isOver() const { return isOver_; }
  bool isNow() const { return !isOver_ && turns_.at(key_).front() == this; }
  /// Ends this turn, so that the next one can begin.
  void pass();
  const MpiWire::Key &key() const { return key_; }

private:
  MpiWire::Turns &turns_;
  const MpiWire::Key key_;
  bool isOver_ = false;
};

/// The messages of one receive, in order.
class MpiArrivals {
public:
  MpiArrivals(MpiWire &wire, MpiWire::Key key)
      : wire_(wire), turn_(wire.unseen, std::move(key)) {}

  /// Returns the bytes of the next message if it has arrived, else -1.
  StatusOr<int64_t> look();
  /// Receives the message that was found.
  Status take(void *data);
  /// Returns true if nothing is being received.
  StatusOr<bool> isTaken();
  bool isTaking() const { return request_ != MPI_REQUEST_NULL; }
  /// Ends the turn: no more messages are expected.
  void end() { turn_.pass(); }
  bool areOver() const { return turn_.isOver(); }
  /// Returns when MPI no longer writes to memory, or never will.
  void withdraw();

private:
  MpiWire &wire_;
  MpiTurn turn_;
  MPI_Message message_ = MPI_MESSAGE_NULL;
  int size_ = 0; ///< bytes of `message_`
  MPI_Request request_ = MPI_REQUEST_NULL;
};

class MpiSend {
public:
  Status start(MpiWire &wire, MpiWire::Channel channel, int peer, int tag,
               const void *data, int64_t bytes);
  StatusOr<bool> advance();
  /// Gives MPI time to send the pieces that the receiver has begun to take.
  void withdraw();

private:
  MpiWire *wire_ = nullptr;
  std::vector<MPI_Request> requests_; ///< one per piece
};

class MpiReceive {
public:
  MpiReceive(MpiWire &wire, MpiWire::Channel channel, int peer, int tag,
             void *data, int64_t bytes)
      : arrivals_(wire, {channel, peer, tag}), data_(static_cast<char *>(data)),
        bytes_(bytes) {}

  StatusOr<bool> advance();
  /// Returns when MPI no longer writes to the buffer, or never will.
  void withdraw() { arrivals_.withdraw(); }

private:
  StatusOr<bool> begin();

  MpiArrivals arrivals_;
  char *const data_;
  const int64_t bytes_;
  int64_t received_ = 0; ///< or being received
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_MPI_MPIWIRE_H
