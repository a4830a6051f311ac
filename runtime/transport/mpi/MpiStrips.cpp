//===- MpiStrips.cpp - Sends messages of rows in pieces -------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiStrips.h"

#include "runtime/transport/Collective.h"

#include <algorithm>
#include <cstring>
#include <utility>

using namespace dyna;

int64_t dyna::nextPiece(const StripCursor &cursor) {
  if (cursor.stripLeft() > kShortStrip)
    return std::min(cursor.stripLeft(), kStripPiece);
  int64_t bytes = 0;
  for (StripCursor ahead = cursor; ahead.stripLeft() > 0;) {
    const int64_t strip = ahead.stripLeft();
    if (strip > kShortStrip || bytes + strip > kStripPiece)
      break;
    bytes += strip;
    ahead.advance(strip);
  }
  return bytes;
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

MpiStripsSend::MpiStripsSend(MpiWire &wire, int peer, int tag,
                             std::vector<Strip> strips)
    : wire_(wire), turn_(wire.unsent, {MpiWire::Messages, peer, tag}),
      strips_(std::move(strips)), bytes_(totalBytes(strips_)),
      cursor_(strips_) {}

MpiStripsSend::~MpiStripsSend() {
  // Do not free memory of pieces that MPI may still use after a failure.
  for (Piece &piece : pieces_)
    if (piece.packed.data)
      wire_.scratch().give(std::move(piece.packed));
}

Status MpiStripsSend::post(const void *data, int64_t bytes,
                           Scratch::Block packed) {
  auto [channel, peer, tag] = turn_.key();
  Piece &piece = pieces_.emplace_back();
  packed_ += packed.data ? 1 : 0;
  piece.packed = std::move(packed);
  return checkMpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, peer, tag,
                            wire_.comm(channel), &piece.request),
                  "MPI_Isend");
}

Status MpiStripsSend::test() {
  while (!pieces_.empty()) {
    Piece &piece = pieces_.front();
    int done = 0;
    DYNA_RETURN_IF_ERROR(checkMpi(
        MPI_Test(&piece.request, &done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (!done)
      break;
    if (piece.packed.data) {
      wire_.scratch().give(std::move(piece.packed));
      --packed_;
    }
    pieces_.pop_front();
    ++wire_.moves;
  }
  return Status::ok();
}

Status MpiStripsSend::sendPiece() {
  const int64_t piece = nextPiece(cursor_);
  sent_ += piece;
  if (cursor_.left() >= piece) {
    const void *data = cursor_.data();
    cursor_.advance(piece);
    return post(data, piece, {});
  }
  Scratch::Block packed = wire_.scratch().take(kStripPiece);
  void *data = packed.data.get();
  const std::vector<Strip> whole = {{data, 1, piece, piece}};
  StripCursor to(whole);
  forEachRun(cursor_, to, piece,
             [](const char *read, char *written, int64_t bytes) {
               memcpy(written, read, static_cast<size_t>(bytes));
             });
  return post(data, piece, std::move(packed));
}

Status MpiStripsSend::sendMore() {
  if (!std::exchange(isAnnounced_, true))
    DYNA_RETURN_IF_ERROR(post(&bytes_, sizeof bytes_, {}));
  while (sent_ < bytes_ && pieces_.size() < kPiecesAhead &&
         packed_ < kPackedAhead)
    DYNA_RETURN_IF_ERROR(sendPiece());
  if (sent_ == bytes_)
    turn_.pass();
  return Status::ok();
}

StatusOr<bool> MpiStripsSend::advance() {
  DYNA_RETURN_IF_ERROR(test());
  if (turn_.isNow()) {
    DYNA_RETURN_IF_ERROR(sendMore());
    DYNA_RETURN_IF_ERROR(test());
  }
  return turn_.isOver() && pieces_.empty();
}

void MpiStripsSend::withdraw() {
  while (!pieces_.empty() && Transport::Clock::now() < wire_.withdrawal())
    if (!test().isOk())
      return;
}

//===----------------------------------------------------------------------===//
// Receiving
//===----------------------------------------------------------------------===//

MpiStripsReceive::MpiStripsReceive(MpiWire &wire, int peer, int tag,
                                   std::vector<Strip> strips, int32_t addedAs)
    : wire_(wire), arrivals_(wire, {MpiWire::Messages, peer, tag}),
      strips_(std::move(strips)), addedAs_(addedAs),
      bytes_(totalBytes(strips_)), cursor_(strips_) {}

MpiStripsReceive::~MpiStripsReceive() {
  if (packed_.data)
    wire_.scratch().give(std::move(packed_));
}

/// Looks for the next piece and begins to receive it.
StatusOr<bool> MpiStripsReceive::begin() {
  DYNA_ASSIGN_OR_RETURN(pending_, arrivals_.look());
  if (pending_ < 0)
    return false;
  const auto head = static_cast<int64_t>(sizeof announced_);
  if (isAnnounced_ ? pending_ == 0 || pending_ > bytes_ - received_ ||
                         pending_ > kStripPiece
                   : pending_ != head)
    return Status::invalidArgument(
        "a piece of the message has " + std::to_string(pending_) +
        " bytes, but " +
        (isAnnounced_ ? "at most " + std::to_string(std::min(bytes_ - received_,
                                                             kStripPiece))
                      : std::to_string(head)) +
        " are expected: it is not one of rows");
  if (isAnnounced_ && addedAs_ != kReplaces &&
      pending_ % elementBytes(addedAs_) != 0)
    return Status::invalidArgument("the receive adds elements of " +
                                   std::to_string(elementBytes(addedAs_)) +
                                   " bytes, but a piece of the message has " +
                                   std::to_string(pending_));
  void *data = &announced_;
  isDirect_ = true;
  if (isAnnounced_) {
    isDirect_ = addedAs_ == kReplaces && cursor_.left() >= pending_;
    if (!isDirect_ && !packed_.data)
      packed_ = wire_.scratch().take(kStripPiece);
    data = isDirect_ ? cursor_.data() : packed_.data.get();
  }
  DYNA_RETURN_IF_ERROR(arrivals_.take(data));
  if (isAnnounced_ && received_ + pending_ == bytes_)
    arrivals_.end();
  return true;
}

Status MpiStripsReceive::finishPiece() {
  if (!isAnnounced_) {
    isAnnounced_ = true;
    if (announced_ != bytes_)
      return Status::invalidArgument(
          "the message has " + std::to_string(announced_) +
          " bytes, but the receive expects " + std::to_string(bytes_));
    if (bytes_ == 0)
      arrivals_.end();
    return Status::ok();
  }
  received_ += pending_;
  if (isDirect_) {
    cursor_.advance(pending_);
    return Status::ok();
  }
  const std::vector<Strip> whole = {{packed_.data.get(), 1, pending_}};
  StripCursor from(whole);
  forEachRun(from, cursor_, pending_,
             [this](const char *read, char *written, int64_t bytes) {
               placeRun(addedAs_, read, written, bytes);
             });
  return Status::ok();
}

StatusOr<bool> MpiStripsReceive::advance() {
  while (true) {
    const bool wasTaking = arrivals_.isTaking();
    StatusOr<bool> isTaken = arrivals_.isTaken();
    if (!isTaken.isOk() || !*isTaken)
      return isTaken;
    if (wasTaking)
      DYNA_RETURN_IF_ERROR(finishPiece());
    if (arrivals_.areOver())
      return true;
    StatusOr<bool> hasBegun = begin();
    if (!hasBegun.isOk() || !*hasBegun)
      return hasBegun;
  }
}
