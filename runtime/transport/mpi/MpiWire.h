//===- MpiWire.h - Messages of one process, polled --------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Communicators and the two halves of a message. Nothing here blocks.
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

namespace dyna {

/// Ok, or a DeviceError with MPI's text.
Status checkMpi(int code, const char *function);

/// MPI counts in int: longer messages travel in pieces.
constexpr int64_t kLongestPiece = int64_t(1) << 30;

class MpiReceive;

/// The communicators of one transport.
class MpiWire {
public:
  /// Which of the communicators a message goes through.
  enum Channel { Messages = 0, Groups = 1, Control = 2, kChannels = 3 };

  ~MpiWire();
  /// Called by all processes together.
  Status open();

  int rank() const { return rank_; }
  int ranks() const { return ranks_; }
  MPI_Comm comm(Channel channel) const { return comms_[channel]; }
  /// Whether this machine runs more ranks than it has cores.
  bool isCrowded() const { return isCrowded_; }
  /// Ranks of this machine that may use a core of this one's, on average.
  int ranksPerCore() const { return ranksPerCore_; }
  Scratch &scratch() { return scratch_; }

  /// Sends the text to all other ranks.
  void announce(const std::string &text);
  /// The first text that another rank has announced, and that rank.
  std::optional<std::pair<int, std::string>> heard();
  /// Meets all other ranks for the last time; false if the deadline passes
  /// before they have come.
  bool sayGoodbye(Transport::Deadline deadline);
  /// After a failure: until when what has begun to arrive may go on arriving,
  /// all of it together.
  Transport::Deadline withdrawal();

private:
  friend class MpiReceive;
  friend class MpiStripsSend;
  friend class MpiStripsReceive;
  Status countNeighbours();
  using Key = std::tuple<Channel, int, int>;

  MPI_Comm comms_[kChannels] = {MPI_COMM_NULL, MPI_COMM_NULL, MPI_COMM_NULL};
  int rank_ = 0, ranks_ = 0;
  bool isCrowded_ = false;
  int ranksPerCore_ = 1;
  std::optional<Transport::Deadline> withdrawal_;
  Scratch scratch_;
  std::string announced_;
  std::vector<MPI_Request> announcements_;
  /// By channel, peer and tag: receives that have not seen their message, in
  /// the order started. Only the first may look for one.
  std::map<Key, std::deque<const void *>> unseen_;
  /// By peer and tag: messages of rows of which MPI has not got all pieces. Only
  /// the first may give it more.
  std::map<std::pair<int, int>, std::deque<const void *>> unsent_;
};

class MpiSend {
public:
  Status start(MpiWire &wire, MpiWire::Channel channel, int peer, int tag,
               const void *data, int64_t bytes);
  StatusOr<bool> advance();
  /// Gives MPI time to send what the receiver has begun to take.
  void withdraw();

private:
  MpiWire *wire_ = nullptr;
  std::vector<MPI_Request> requests_; ///< one per piece
};

class MpiReceive {
public:
  MpiReceive(MpiWire &wire, MpiWire::Channel channel, int peer, int tag,
             void *data, int64_t bytes);
  ~MpiReceive();
  MpiReceive(const MpiReceive &) = delete;
  MpiReceive &operator=(const MpiReceive &) = delete;

  StatusOr<bool> advance();
  /// Returns when MPI no longer writes to the buffer, or will never.
  void withdraw();

private:
  StatusOr<bool> match();

  MpiWire &wire_;
  const MpiWire::Key key_;
  char *const data_;
  const int64_t bytes_;
  int64_t received_ = 0;
  bool isSeen_ = false; ///< all pieces have arrived, at least in part
  MPI_Request request_ = MPI_REQUEST_NULL;
  int64_t pending_ = 0; ///< bytes of `request_`
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_MPI_MPIWIRE_H
