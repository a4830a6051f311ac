//===- MpiStrips.h - Sends messages of rows in pieces -----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// A message of rows is its number of bytes, followed by pieces of at most
// kStripPiece. The sender cuts the pieces (`nextPiece`) and the receiver
// accepts them as they come. So the two ends may cut their rows differently.
//
// A piece that lies in one run is sent or received in place. Others are packed
// and unpacked piece by piece. That memory stays in a core's cache and is
// bounded, however long the message is.
//
// Both ends mostly have the same strips, with rows of other lengths. So pieces
// end at the end of a strip. A piece with the end of one tensor and the begin
// of the next would be packed on both sides.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_TRANSPORT_MPI_MPISTRIPS_H
#define DYNA_RUNTIME_TRANSPORT_MPI_MPISTRIPS_H

#include "runtime/transport/mpi/MpiWire.h"

namespace dyna {

/// Largest piece; it has whole elements of every type.
constexpr int64_t kStripPiece = int64_t(256) << 10;
/// Strips that are shorter than this share a piece.
constexpr int64_t kShortStrip = int64_t(32) << 10;
/// Limits of the pieces of one message that a sender has given to MPI: packed
/// ones, which need memory, and all.
constexpr size_t kPackedAhead = 16, kPiecesAhead = 64;

/// Returns the bytes of the piece at the cursor, which is not at the end. The
/// piece ends with a strip, or with the last of several short ones.
int64_t nextPiece(const StripCursor &cursor);

class MpiStripsSend {
public:
  MpiStripsSend(MpiWire &wire, int peer, int tag, std::vector<Strip> strips);
  ~MpiStripsSend();

  StatusOr<bool> advance();
  /// Gives MPI time to send the pieces that the receiver has begun to take.
  void withdraw();

private:
  struct Piece {
    MPI_Request request = MPI_REQUEST_NULL;
    Scratch::Block packed;
  };
  /// Drops pieces that MPI has sent.
  Status test();
  Status post(const void *data, int64_t bytes, Scratch::Block packed);
  Status sendPiece();
  Status sendMore();

  MpiWire &wire_;
  MpiTurn turn_;
  const std::vector<Strip> strips_;
  const int64_t bytes_;
  StripCursor cursor_;
  int64_t sent_ = 0; ///< bytes sent or given to MPI
  bool isAnnounced_ = false;
  std::deque<Piece> pieces_; ///< pieces that MPI is sending
  size_t packed_ = 0;        ///< pieces that are packed copies
};

class MpiStripsReceive {
public:
  MpiStripsReceive(MpiWire &wire, int peer, int tag, std::vector<Strip> strips,
                   int32_t addedAs);
  ~MpiStripsReceive();

  StatusOr<bool> advance();
  /// Returns when MPI no longer writes to the rows, or never will.
  void withdraw() { arrivals_.withdraw(); }

private:
  StatusOr<bool> begin();
  Status finishPiece();

  MpiWire &wire_;
  MpiArrivals arrivals_;
  const std::vector<Strip> strips_;
  const int32_t addedAs_;
  const int64_t bytes_;
  StripCursor cursor_;
  int64_t announced_ = 0; ///< bytes of the message, as the sender says
  bool isAnnounced_ = false;
  int64_t received_ = 0;
  int64_t pending_ = 0; ///< bytes that are being received
  bool isDirect_ = false;
  Scratch::Block packed_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_TRANSPORT_MPI_MPISTRIPS_H
