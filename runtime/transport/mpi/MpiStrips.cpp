//===- MpiStrips.cpp - Messages of rows, in pieces ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiStrips.h"

#include <algorithm>

using namespace dyna;

/// Lets the next one of a queue begin.
template <typename Queues, typename Key>
static void leaveQueue(Queues &queues, const Key &key, const void *self) {
  auto queue = queues.find(key);
  if (queue == queues.end())
    return;
  auto &waiting = queue->second;
  auto place = std::find(waiting.begin(), waiting.end(), self);
  if (place != waiting.end())
    waiting.erase(place);
  if (waiting.empty())
    queues.erase(queue);
}

//===----------------------------------------------------------------------===//
// Sending
//===----------------------------------------------------------------------===//

MpiStripsSend::MpiStripsSend(MpiWire &wire, int peer, int tag,
                             std::vector<Strip> strips)
    : wire_(wire), key_(peer, tag), strips_(std::move(strips)),
      bytes_(totalBytes(strips_)), cursor_(strips_) {
  wire_.unsent_[key_].push_back(this);
}

MpiStripsSend::~MpiStripsSend() {
  passOn();
  // Of pieces that are still with MPI nobody takes the memory again: the
  // transport has failed.
  for (Piece &piece : pieces_)
    wire_.scratch().give(std::move(piece.packed));
}

void MpiStripsSend::passOn() {
  if (!std::exchange(isPosted_, true))
    leaveQueue(wire_.unsent_, key_, this);
}

Status MpiStripsSend::post(const void *data, int64_t bytes,
                           Scratch::Block packed) {
  Piece &piece = pieces_.emplace_back();
  piece.packed = std::move(packed);
  return checkMpi(MPI_Isend(data, static_cast<int>(bytes), MPI_BYTE, key_.first,
                            key_.second, wire_.comm(MpiWire::Messages),
                            &piece.request),
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
    if (piece.packed.data)
      wire_.scratch().give(std::move(piece.packed));
    pieces_.pop_front();
  }
  return Status::ok();
}

Status MpiStripsSend::sendMore() {
  if (!isAnnounced_) {
    isAnnounced_ = true;
    DYNA_RETURN_IF_ERROR(post(&bytes_, sizeof bytes_, {}));
  }
  while (sent_ < bytes_ && pieces_.size() < kPiecesAhead) {
    const int64_t piece = std::min(kStripPiece, bytes_ - sent_);
    sent_ += piece;
    if (cursor_.left() >= piece) {
      const void *data = cursor_.data();
      cursor_.advance(piece);
      DYNA_RETURN_IF_ERROR(post(data, piece, {}));
      continue;
    }
    Scratch::Block packed = wire_.scratch().take(kStripPiece);
    void *data = packed.data.get();
    const std::vector<Strip> whole = {{data, 1, piece, piece}};
    StripCursor to(whole);
    forEachRun(cursor_, to, piece,
               [](const char *read, char *written, int64_t bytes) {
                 placeRun(kReplaces, read, written, bytes);
               });
    DYNA_RETURN_IF_ERROR(post(data, piece, std::move(packed)));
  }
  if (sent_ == bytes_)
    passOn();
  return Status::ok();
}

StatusOr<bool> MpiStripsSend::advance() {
  DYNA_RETURN_IF_ERROR(test());
  if (!isPosted_ && wire_.unsent_.at(key_).front() == this) {
    DYNA_RETURN_IF_ERROR(sendMore());
    DYNA_RETURN_IF_ERROR(test());
  }
  return isPosted_ && pieces_.empty();
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
    : wire_(wire), key_(MpiWire::Messages, peer, tag),
      strips_(std::move(strips)), addedAs_(addedAs),
      bytes_(totalBytes(strips_)), cursor_(strips_) {
  wire_.unseen_[key_].push_back(this);
}

MpiStripsReceive::~MpiStripsReceive() {
  passOn();
  if (packed_.data)
    wire_.scratch().give(std::move(packed_));
}

void MpiStripsReceive::passOn() {
  if (!std::exchange(isSeen_, true))
    leaveQueue(wire_.unseen_, key_, this);
}

/// Looks for the next piece and begins to receive it.
StatusOr<bool> MpiStripsReceive::match() {
  if (wire_.unseen_.at(key_).front() != this)
    return false;
  auto [channel, peer, tag] = key_;
  int found = 0;
  MPI_Message message;
  MPI_Status status;
  DYNA_RETURN_IF_ERROR(checkMpi(
      MPI_Improbe(peer, tag, wire_.comm(channel), &found, &message, &status),
      "MPI_Improbe"));
  if (!found)
    return false;
  int size = 0;
  MPI_Get_count(&status, MPI_BYTE, &size);
  pending_ = isAnnounced_ ? std::min(bytes_ - received_, kStripPiece)
                          : static_cast<int64_t>(sizeof announced_);
  if (size != pending_)
    return Status::invalidArgument(
        "a piece of the message has " + std::to_string(size) + " bytes, but " +
        std::to_string(pending_) + " are expected: it is not one of rows");
  void *data = &announced_;
  isDirect_ = true;
  if (isAnnounced_) {
    isDirect_ = addedAs_ == kReplaces && cursor_.left() >= pending_;
    if (!isDirect_ && !packed_.data)
      packed_ = wire_.scratch().take(kStripPiece);
    data = isDirect_ ? cursor_.data() : packed_.data.get();
  }
  DYNA_RETURN_IF_ERROR(checkMpi(
      MPI_Imrecv(data, size, MPI_BYTE, &message, &request_), "MPI_Imrecv"));
  if (isAnnounced_ && received_ + pending_ == bytes_)
    passOn();
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
      passOn();
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
    if (request_ == MPI_REQUEST_NULL) {
      if (isSeen_)
        return true;
      StatusOr<bool> isMatched = match();
      if (!isMatched.isOk() || !*isMatched)
        return isMatched;
    }
    int done = 0;
    DYNA_RETURN_IF_ERROR(
        checkMpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test"));
    if (!done)
      return false;
    DYNA_RETURN_IF_ERROR(finishPiece());
  }
}

void MpiStripsReceive::withdraw() {
  int done = 0;
  while (request_ != MPI_REQUEST_NULL &&
         Transport::Clock::now() < wire_.withdrawal())
    if (MPI_Test(&request_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return;
}
