//===- MpiExchange.cpp - Runs one rank's side of a collective -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiExchange.h"

#include "runtime/base/wire/Reduction.h"

#include <algorithm>

using namespace dyna;

static bool isContiguous(Rows rows) {
  Rows ends = packed(rows, 0);
  mergeRuns(rows, ends);
  return rows.outer == 1 && rows.inner == 1;
}

Status MpiExchange::start() {
  if (collective_.kind == CollectiveKind::Barrier) {
    for (int step = 1; step < size(); ++step) {
      DYNA_RETURN_IF_ERROR(send((index_ + step) % size(), nullptr, 0));
      receive((index_ + step) % size(), nullptr, 0);
    }
    return Status::ok();
  }
  return collective_.isReduction() ? startReduction()
                                   : startCopies(collective_);
}

Status MpiExchange::send(int to, const void *data, int64_t bytes) {
  sends_.emplace_back();
  return sends_.back().start(wire_, MpiWire::Groups, ranks_[size_t(to)],
                             tags_[size_t(to)], data, bytes);
}

void MpiExchange::receive(int from, void *data, int64_t bytes) {
  receives_.emplace_back(wire_, MpiWire::Groups, ranks_[size_t(from)],
                         tags_[size_t(from)], data, bytes);
}

char *MpiExchange::scratch(int64_t bytes) {
  scratch_.push_back(wire_.scratch().take(bytes));
  return scratch_.back().data.get();
}

void MpiExchange::freeScratch() {
  for (Scratch::Block &block : scratch_)
    wire_.scratch().give(std::move(block));
  scratch_.clear();
}

const char *MpiExchange::packedRows(const void *data, Rows rows) {
  if (isContiguous(rows))
    return static_cast<const char *>(data) + rows.offset;
  char *space = scratch(rows.totalBytes());
  copyRows(data, rows, space, packed(rows, 0));
  return space;
}

/// Starts copies: every rank's part goes directly to the ranks that need it.
Status MpiExchange::startCopies(const Collective &c) {
  for (int step = 0; step < size(); ++step) {
    int peer = (index_ + step) % size();
    Rows source = c.sourceRows(size(), index_, peer);
    Rows target = c.targetRows(size(), index_, peer);
    if (peer == index_) {
      const void *in = static_cast<const char *>(c.in) + source.offset;
      const void *out = static_cast<const char *>(c.out) + target.offset;
      if (in != out)
        copyRows(c.in, source, c.out, target);
      continue;
    }
    if (source.totalBytes() > 0)
      DYNA_RETURN_IF_ERROR(
          send(peer, packedRows(c.in, source), source.totalBytes()));
    Rows mine = c.targetRows(size(), peer, index_);
    int64_t bytes = mine.totalBytes();
    if (bytes == 0)
      continue;
    if (isContiguous(mine)) {
      receive(peer, static_cast<char *>(c.out) + mine.offset, bytes);
    } else {
      char *space = scratch(bytes);
      receive(peer, space, bytes);
      unpacks_.push_back({space, mine});
    }
  }
  return Status::ok();
}

/// Starts a reduction: every rank's contribution to a part goes to the rank
/// that sums it.
Status MpiExchange::startReduction() {
  isReducing_ = true;
  Collective c = collective_;
  int64_t whole = c.inBytes(size(), index_);
  bool isOneRound =
      c.kind == CollectiveKind::AllReduce && whole <= kOneRoundBytes;
  auto rowsFor = [&](int to) {
    return isOneRound ? Rows{0, 1, 0, 1, 0, whole}
                      : c.sourceRows(size(), index_, to);
  };
  Rows mine = rowsFor(index_);
  int64_t bytes = mine.totalBytes();
  result_ = isOneRound ? mine : c.targetRows(size(), index_, index_);
  contributions_.resize(ranks_.size());
  contributions_[size_t(index_)] = packedRows(c.in, mine);
  for (int step = 1; step < size(); ++step) {
    int peer = (index_ + step) % size();
    Rows theirs = rowsFor(peer);
    if (theirs.totalBytes() > 0)
      DYNA_RETURN_IF_ERROR(
          send(peer, packedRows(c.in, theirs), theirs.totalBytes()));
    if (bytes == 0)
      continue;
    char *space = scratch(bytes);
    receive(peer, space, bytes);
    contributions_[size_t(peer)] = space;
  }
  return Status::ok();
}

StatusOr<bool> MpiExchange::roundIsDone() {
  bool isDone = true;
  for (MpiReceive &receive : receives_) {
    StatusOr<bool> done = receive.advance();
    DYNA_RETURN_IF_ERROR(done.status());
    isDone = isDone && *done;
  }
  for (MpiSend &send : sends_) {
    StatusOr<bool> done = send.advance();
    DYNA_RETURN_IF_ERROR(done.status());
    isDone = isDone && *done;
  }
  return isDone;
}

/// Sums or unpacks what has come. No send of this round still reads `in`, which
/// may be `out`.
Status MpiExchange::finishRound() {
  sends_.clear();
  receives_.clear();
  for (const Unpack &unpack : unpacks_)
    copyRows(unpack.from, packed(unpack.rows, 0), collective_.out, unpack.rows);
  unpacks_.clear();
  if (isReducing_ && result_.totalBytes() > 0) {
    // Results of reductions are contiguous.
    void *target = static_cast<char *>(collective_.out) + result_.offset;
    reduceElements(collective_.element, collective_.reduction,
                   contributions_.data(), size(), &target, 1,
                   result_.totalBytes() / elementBytes(collective_.element));
  }
  freeScratch();
  bool isComplete = collective_.kind != CollectiveKind::AllReduce ||
                    isSecondRound_ ||
                    collective_.inBytes(size(), index_) <= kOneRoundBytes;
  if (isComplete)
    return Status::ok();
  isReducing_ = false;
  isSecondRound_ = true;
  for (int &tag : tags_)
    ++tag;
  // Gather the parts of `out` from the ranks that have summed them.
  char *out = static_cast<char *>(collective_.out);
  return startCopies(
      Collective::flat(CollectiveKind::AllGather, out + result_.offset, out,
                       collective_.wholeElements(), collective_.element));
}

StatusOr<bool> MpiExchange::advance() {
  if (isDone_)
    return true;
  bool wasSecondRound = isSecondRound_;
  StatusOr<bool> done = roundIsDone();
  if (!done.isOk() || !*done)
    return done;
  DYNA_RETURN_IF_ERROR(finishRound());
  isDone_ = isSecondRound_ ==
            wasSecondRound; // otherwise the second round has just begun
  return isDone_;
}

void MpiExchange::withdraw() {
  for (MpiReceive &receive : receives_)
    receive.withdraw();
  for (MpiSend &send : sends_)
    send.withdraw();
}
