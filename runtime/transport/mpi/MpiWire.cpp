//===- MpiWire.cpp - Sends and polls the messages of one process ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/mpi/MpiWire.h"

#include <algorithm>
#include <cmath>
#include <sched.h>
#include <thread>

using namespace dyna;

Status dyna::checkMpi(int code, const char *function) {
  if (code == MPI_SUCCESS)
    return Status::ok();
  char text[MPI_MAX_ERROR_STRING] = "";
  int length = 0;
  MPI_Error_string(code, text, &length);
  return Status::deviceError(std::string(function) + ": " + text);
}

//===----------------------------------------------------------------------===//
// Communicators
//===----------------------------------------------------------------------===//

Status MpiWire::open() {
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (MPI_Comm &comm : comms_) {
    DYNA_RETURN_IF_ERROR(
        checkMpi(MPI_Comm_dup(MPI_COMM_WORLD, &comm), "MPI_Comm_dup"));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  }
  MPI_Comm_rank(MPI_COMM_WORLD, &rank_);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks_);
  isPresent_.assign(size_t(ranks_), false);
  return countNeighbours();
}

/// Launchers bind processes to cores, or do not: each says which it may use.
Status MpiWire::countNeighbours() {
  MPI_Comm machine = MPI_COMM_NULL;
  DYNA_RETURN_IF_ERROR(
      checkMpi(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, rank_,
                                   MPI_INFO_NULL, &machine),
               "MPI_Comm_split_type"));
  int here = 1;
  MPI_Comm_size(machine, &here);
  isCrowded_ = here > static_cast<int>(std::thread::hardware_concurrency());
  cpu_set_t mask;
  CPU_ZERO(&mask);
  (void)sched_getaffinity(0, sizeof(mask), &mask);
  std::vector<int> mine(CPU_SETSIZE), users(CPU_SETSIZE);
  for (int core = 0; core < CPU_SETSIZE; ++core)
    mine[size_t(core)] = CPU_ISSET(core, &mask) ? 1 : 0;
  Status counted =
      checkMpi(MPI_Allreduce(mine.data(), users.data(), CPU_SETSIZE, MPI_INT,
                             MPI_SUM, machine),
               "MPI_Allreduce");
  MPI_Comm_free(&machine);
  DYNA_RETURN_IF_ERROR(counted);
  double cores = CPU_COUNT(&mask), share = 0;
  for (size_t core = 0; core < users.size(); ++core)
    if (mine[core])
      share += 1.0 / users[core];
  constexpr double rounding = 1e-6;
  ranksPerCore_ =
      share > 0 ? static_cast<int>(std::ceil(cores / share - rounding)) : here;
  return Status::ok();
}

Transport::Deadline MpiWire::withdrawal() {
  if (!withdrawal_)
    withdrawal_ = Transport::Clock::now() + std::chrono::milliseconds(500);
  return *withdrawal_;
}

MpiWire::~MpiWire() {
  for (MPI_Comm &comm : comms_)
    if (comm != MPI_COMM_NULL)
      MPI_Comm_free(&comm);
}

void MpiWire::announce(const std::string &text) {
  constexpr size_t longest = 4000; // MPI sends this without a waiting receiver
  announced_ = text.substr(0, longest);
  sendToAll(announced_.data(), announced_.size(), Failure);
}

void MpiWire::announceStop() { sendToAll(nullptr, 0, Stop); }

void MpiWire::sayPresent() { sendToAll(nullptr, 0, Present); }

std::vector<int> MpiWire::absent() const {
  std::vector<int> ranks;
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_ && !isPresent_[size_t(peer)])
      ranks.push_back(peer);
  return ranks;
}

void MpiWire::sendToAll(const char *data, size_t bytes, ControlTag tag) {
  for (int peer = 0; peer < ranks_; ++peer)
    if (peer != rank_) {
      announcements_.push_back(MPI_REQUEST_NULL);
      (void)MPI_Isend(data, static_cast<int>(bytes), MPI_CHAR, peer, tag,
                      comms_[Control], &announcements_.back());
    }
}

std::optional<std::pair<int, std::string>> MpiWire::heard() {
  while (true) {
    int found = 0;
    MPI_Status status;
    if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comms_[Control], &found,
                   &status) != MPI_SUCCESS ||
        !found)
      return std::nullopt;
    int size = 0;
    MPI_Get_count(&status, MPI_CHAR, &size);
    std::string text(static_cast<size_t>(size), ' ');
    // This does not block, because the message has arrived.
    (void)MPI_Recv(text.data(), size, MPI_CHAR, status.MPI_SOURCE,
                   status.MPI_TAG, comms_[Control], MPI_STATUS_IGNORE);
    if (status.MPI_TAG == Stop) {
      hasHeardStop_ = true;
      continue;
    }
    isPresent_[size_t(status.MPI_SOURCE)] = true;
    if (status.MPI_TAG == Failure)
      return std::make_pair(status.MPI_SOURCE, std::move(text));
  }
}

bool MpiWire::sayGoodbye(Transport::Deadline deadline) {
  MPI_Request barrier = MPI_REQUEST_NULL;
  if (MPI_Ibarrier(comms_[Control], &barrier) != MPI_SUCCESS)
    return false;
  while (true) {
    int haveCome = 0, areSent = 0;
    if (MPI_Test(&barrier, &haveCome, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return false;
    (void)MPI_Testall(static_cast<int>(announcements_.size()),
                      announcements_.data(), &areSent, MPI_STATUSES_IGNORE);
    bool isQuiet = !heard(); // receives what is still on its way
    if (haveCome && areSent && isQuiet)
      return true;
    if (Transport::Clock::now() >= deadline)
      return false;
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

//===----------------------------------------------------------------------===//
// Messages
//===----------------------------------------------------------------------===//

Status MpiSend::start(MpiWire &wire, MpiWire::Channel channel, int peer,
                      int tag, const void *data, int64_t bytes) {
  wire_ = &wire;
  int64_t begin = 0;
  do {
    int64_t piece = std::min(bytes - begin, kLongestPiece);
    requests_.push_back(MPI_REQUEST_NULL);
    DYNA_RETURN_IF_ERROR(
        checkMpi(MPI_Isend(static_cast<const char *>(data) + begin,
                           static_cast<int>(piece), MPI_BYTE, peer, tag,
                           wire.comm(channel), &requests_.back()),
                 "MPI_Isend"));
    begin += piece;
  } while (begin < bytes);
  return Status::ok();
}

StatusOr<bool> MpiSend::advance() {
  int done = 0;
  DYNA_RETURN_IF_ERROR(
      checkMpi(MPI_Testall(static_cast<int>(requests_.size()), requests_.data(),
                           &done, MPI_STATUSES_IGNORE),
               "MPI_Testall"));
  return done != 0;
}

void MpiSend::withdraw() {
  while (wire_ && Transport::Clock::now() < wire_->withdrawal()) {
    StatusOr<bool> done = advance();
    if (!done.isOk() || *done)
      return;
  }
}

void MpiTurn::pass() {
  if (std::exchange(isOver_, true))
    return;
  auto turns = turns_.find(key_);
  auto &waiting = turns->second;
  waiting.erase(std::find(waiting.begin(), waiting.end(), this));
  if (waiting.empty())
    turns_.erase(turns);
}

StatusOr<int64_t> MpiArrivals::look() {
  if (!turn_.isNow())
    return -1;
  auto [channel, peer, tag] = turn_.key();
  int found = 0;
  MPI_Status status;
  DYNA_RETURN_IF_ERROR(checkMpi(
      MPI_Improbe(peer, tag, wire_.comm(channel), &found, &message_, &status),
      "MPI_Improbe"));
  if (!found)
    return -1;
  MPI_Get_count(&status, MPI_BYTE, &size_);
  return size_;
}

Status MpiArrivals::take(void *data) {
  return checkMpi(MPI_Imrecv(data, size_, MPI_BYTE, &message_, &request_),
                  "MPI_Imrecv");
}

StatusOr<bool> MpiArrivals::isTaken() {
  int done = 0;
  if (isTaking()) {
    DYNA_RETURN_IF_ERROR(
        checkMpi(MPI_Test(&request_, &done, MPI_STATUS_IGNORE), "MPI_Test"));
    wire_.moves += done;
  }
  return !isTaking();
}

void MpiArrivals::withdraw() {
  // A message that has begun to arrive goes on whenever MPI is called, unless
  // its sender is gone.
  int done = 0;
  while (isTaking() && Transport::Clock::now() < wire_.withdrawal())
    if (MPI_Test(&request_, &done, MPI_STATUS_IGNORE) != MPI_SUCCESS)
      return;
}

/// Looks for the next piece and begins to receive it.
StatusOr<bool> MpiReceive::begin() {
  DYNA_ASSIGN_OR_RETURN(const int64_t size, arrivals_.look());
  if (size < 0)
    return false;
  const int64_t expected = std::min(bytes_ - received_, kLongestPiece);
  if (size != expected)
    return Status::invalidArgument(std::string("the message has ") +
                                   (size == kLongestPiece ? "more than " : "") +
                                   std::to_string(received_ + size) +
                                   " bytes, but the receive expects " +
                                   std::to_string(bytes_));
  DYNA_RETURN_IF_ERROR(arrivals_.take(data_ + received_));
  received_ += size;
  if (received_ == bytes_)
    arrivals_.end();
  return true;
}

StatusOr<bool> MpiReceive::advance() {
  while (true) {
    StatusOr<bool> isTaken = arrivals_.isTaken();
    if (!isTaken.isOk() || !*isTaken || arrivals_.areOver())
      return isTaken;
    StatusOr<bool> hasBegun = begin();
    if (!hasBegun.isOk() || !*hasBegun)
      return hasBegun;
  }
}
