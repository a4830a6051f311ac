//===- MpiStrips.h - Messages of rows, in pieces ----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A message of rows is its number of bytes, then pieces of kStripPiece, the last
// one shorter, whatever the rows at either end: so that the two may be cut as they
// like. A piece that lies in one run goes from there, or comes there; others are
// packed and unpacked piece by piece, in memory that stays in a core's cache and
// is bounded however long the message is.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_MPI_MPISTRIPS_H
#define DYNA_RUNTIME_TRANSPORT_MPI_MPISTRIPS_H

#include "runtime/transport/mpi/MpiWire.h"

namespace dyna {

/// Whole elements of every type.
constexpr int64_t kStripPiece = int64_t(256) << 10;
/// Pieces of one message that a sender has given MPI at any time.
constexpr size_t kPiecesAhead = 4;

class MpiStripsSend {
public:
  MpiStripsSend(MpiWire &wire, int peer, int tag, std::vector<Strip> strips);
  ~MpiStripsSend();
  MpiStripsSend(const MpiStripsSend &) = delete;
  MpiStripsSend &operator=(const MpiStripsSend &) = delete;

  StatusOr<bool> advance();
  /// Gives MPI time to send what the receiver has begun to take.
  void withdraw();

private:
  struct Piece {
    MPI_Request request = MPI_REQUEST_NULL;
    Scratch::Block packed;
  };
  /// Gives away pieces that have gone.
  Status test();
  Status post(const void *data, int64_t bytes, Scratch::Block packed);
  Status sendMore();
  void passOn();

  MpiWire &wire_;
  const std::pair<int, int> key_; ///< peer and tag
  const std::vector<Strip> strips_;
  const int64_t bytes_;
  StripCursor cursor_;
  int64_t sent_ = 0; ///< or with MPI
  bool isAnnounced_ = false, isPosted_ = false;
  std::deque<Piece> pieces_; ///< with MPI
};

class MpiStripsReceive {
public:
  MpiStripsReceive(MpiWire &wire, int peer, int tag, std::vector<Strip> strips,
                   int32_t addedAs);
  ~MpiStripsReceive();
  MpiStripsReceive(const MpiStripsReceive &) = delete;
  MpiStripsReceive &operator=(const MpiStripsReceive &) = delete;

  StatusOr<bool> advance();
  /// Returns when MPI no longer writes to the rows, or will never.
  void withdraw();

private:
  StatusOr<bool> match();
  Status finishPiece();
  void passOn();

  MpiWire &wire_;
  const MpiWire::Key key_;
  const std::vector<Strip> strips_;
  const int32_t addedAs_;
  const int64_t bytes_;
  StripCursor cursor_;
  int64_t announced_ = 0; ///< bytes of the message, as the sender says
  bool isAnnounced_ = false, isSeen_ = false;
  int64_t received_ = 0;
  MPI_Request request_ = MPI_REQUEST_NULL;
  int64_t pending_ = 0; ///< bytes of `request_`
  bool isDirect_ = false;
  Scratch::Block packed_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_MPI_MPISTRIPS_H
