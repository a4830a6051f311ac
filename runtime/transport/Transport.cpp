//===- Transport.cpp - Runs operations of all backends ----------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/transport/Transport.h"

#include "runtime/base/text/Text.h"

#include <algorithm>
#include <cmath>

using namespace dyna;

Transport::~Transport() = default;

void Traffic::add(const Traffic &other, int64_t times) {
  messages += times * other.messages;
  messageBytes += times * other.messageBytes;
  collectiveCalls += times * other.collectiveCalls;
  wholeBytes += times * other.wholeBytes;
  for (int kind = 0; kind < kCollectiveKinds; ++kind) {
    collectives[kind] += times * other.collectives[kind];
    collectiveBytes[kind] += times * other.collectiveBytes[kind];
  }
}

//===----------------------------------------------------------------------===//
// Starting
//===----------------------------------------------------------------------===//

static std::string listOf(const std::vector<int> &ranks) {
  std::string text = "{";
  for (size_t i = 0; i < ranks.size(); ++i)
    text += (i ? ", " : "") + std::to_string(ranks[i]);
  return text + "}";
}

std::string Transport::Description::text() const {
  if (!direction)
    return describeAll(collectives) + " in group " + listOf(*group);
  return std::string(direction) + std::to_string(peer) + ", tag " +
         std::to_string(tag) + ", " + std::to_string(bytes) + " bytes";
}

/// Returns the fault of rows, or null. Sums up their bytes.
static const char *checkStrips(const std::vector<Strip> &strips,
                               int32_t addedAs, int64_t &bytes) {
  const int64_t element = addedAs == kReplaces ? 1 : elementBytes(addedAs);
  if (element == 0)
    return "there is no such type of elements to add";
  bytes = 0;
  for (const Strip &strip : strips) {
    int64_t own = 0;
    if (strip.count < 0 || strip.bytes < 0)
      return "negative size";
    if (__builtin_mul_overflow(strip.count, strip.bytes, &own) ||
        __builtin_add_overflow(bytes, own, &bytes))
      return "more bytes than can be counted";
    if (!strip.data && own > 0)
      return "null buffer";
    if (strip.count > 1 && strip.stride < strip.bytes)
      return "rows that overlap";
    if (strip.bytes % element != 0)
      return "rows of broken elements";
  }
  return nullptr;
}

StatusOr<Transport::Description>
Transport::checkMessage(bool isSend, Message &message) const {
  const char *expected =
      checkStrips(message.strips, message.addedAs, message.bytes);
  Description what;
  what.direction = isSend ? "send to rank " : "receive from rank ";
  what.peer = message.peer, what.tag = message.tag;
  what.bytes = message.isOfRows ? message.bytes : message.strips[0].bytes;
  if (message.peer < 0 || message.peer >= ranks_)
    expected = "there is no such rank";
  else if (message.peer == rank_)
    expected = "a rank does not send to itself; copy instead";
  else if (message.tag < 0 || message.tag > kLargestTag)
    expected = "the tag is out of range";
  if (!expected)
    return what;
  return Status::invalidArgument("rank " + std::to_string(rank_) + " of " +
                                 std::to_string(ranks_) + ": " + what.text() +
                                 ": " + expected);
}

StatusOr<Ticket> Transport::start(bool isSend, Message message, void *stream) {
  StatusOr<Description> what = checkMessage(isSend, message);
  DYNA_RETURN_IF_ERROR(what.status());
  DYNA_RETURN_IF_ERROR(failure_);
  if (isSend) {
    ++traffic_.messages;
    traffic_.messageBytes += message.bytes;
  }
  return add(isSend ? makeSend(std::move(message), stream)
                    : makeReceive(std::move(message), stream),
             std::move(*what));
}

StatusOr<Ticket> Transport::startSend(int peer, int32_t tag, const void *data,
                                      int64_t bytes, void *stream) {
  return start(true, {peer, tag, {{const_cast<void *>(data), 1, bytes, bytes}}},
               stream);
}

StatusOr<Ticket> Transport::startReceive(int peer, int32_t tag, void *data,
                                         int64_t bytes, void *stream) {
  return start(false, {peer, tag, {{data, 1, bytes, bytes}}}, stream);
}

StatusOr<Ticket> Transport::startSend(int peer, int32_t tag,
                                      std::vector<Strip> strips, void *stream) {
  return start(true, {peer, tag, std::move(strips), true}, stream);
}

StatusOr<Ticket> Transport::startReceive(int peer, int32_t tag,
                                         std::vector<Strip> strips,
                                         void *stream, int32_t addedAs) {
  return start(false, {peer, tag, std::move(strips), true, addedAs}, stream);
}

StatusOr<Ticket> Transport::add(MadeOperation operation,
                                Description description) {
  if (!operation.isOk())
    return fail(description.text(), operation.status());
  Ticket ticket{nextTicket_++};
  started_.push_back(
      {ticket, false, std::move(*operation), std::move(description)});
  return ticket;
}

//===----------------------------------------------------------------------===//
// Progress
//===----------------------------------------------------------------------===//

Status Transport::advanceAll() {
  if (Status status = poll(); !status.isOk()) {
    settle(status);
    return failure_;
  }
  for (Started &started : started_) {
    if (started.isDone)
      continue;
    StatusOr<bool> done = started.operation->advance();
    if (!done.isOk())
      return fail(started.description.text(), done.status());
    started.isDone = *done;
  }
  return Status::ok();
}

Status Transport::progress() {
  DYNA_RETURN_IF_ERROR(failure_);
  return advanceAll();
}

Status Transport::wait(Ticket ticket, void *stream, Deadline deadline) {
  DYNA_RETURN_IF_ERROR(failure_);
  Clock::time_point begin = Clock::now();
  while (true) {
    DYNA_RETURN_IF_ERROR(advanceAll());
    auto found = std::lower_bound(
        started_.begin(), started_.end(), ticket,
        [](const Started &s, Ticket t) { return s.ticket < t; });
    if (found == started_.end() || found->ticket != ticket)
      return Status::invalidArgument(
          "rank " + std::to_string(rank_) + ": ticket " +
          std::to_string(static_cast<int64_t>(ticket)) +
          " was never given out or has been waited for before");
    if (found->isDone) {
      Status status = found->operation->finish(stream);
      std::string what = status.isOk() ? "" : found->description.text();
      started_.erase(found);
      return status.isOk() ? status : fail(what, status);
    }
    if (Clock::now() >= deadline) {
      double seconds =
          std::chrono::duration<double>(Clock::now() - begin).count();
      // The wait begins a little after its deadline was set, so round 4.99
      // seconds to 5.
      if (seconds > 2)
        seconds = std::round(seconds);
      return fail(found->description.text(),
                  Status(StatusCode::DeadlineExceeded,
                         formatText("not done after %.3g seconds", seconds)));
    }
    idle(begin, deadline);
  }
}

//===----------------------------------------------------------------------===//
// Failure
//===----------------------------------------------------------------------===//

/// Removes "rank 2: " or "rank 2 of 4: " from the beginning of a text, because
/// the caller adds the name of the rank in another form.
static std::string withoutRank(int rank, const std::string &text) {
  const std::string name = "rank " + std::to_string(rank);
  if (text.rfind(name, 0) != 0)
    return text;
  size_t end = name.size();
  if (text.compare(end, 4, " of ") == 0)
    end = text.find_first_not_of("0123456789", end + 4);
  return end != std::string::npos && text.compare(end, 2, ": ") == 0
             ? text.substr(end + 2)
             : text;
}

Status Transport::peerFailure(int rank, const std::string &text) {
  return Status(StatusCode::PeerFailed,
                "rank " + std::to_string(rank) +
                    " failed: " + withoutRank(rank, text));
}

std::string Transport::ofThisRank(const std::string &text) const {
  return "rank " + std::to_string(rank_) + ": " + withoutRank(rank_, text);
}

/// Keeps the failure and lets go of all buffers.
void Transport::settle(Status failure) {
  failure_ = std::move(failure);
  for (Started &started : started_)
    started.operation->withdraw();
  started_.clear();
}

void Transport::close() {
  if (failure_.isOk() && !started_.empty() && advanceAll().isOk())
    for (const Started &started : started_)
      if (!started.isDone) {
        abort(Status(StatusCode::Cancelled, "left without waiting for its " +
                                                started.description.text()));
        break;
      }
  started_.clear();
}

Status Transport::fail(const std::string &what, const Status &status) {
  // A failure of a peer already names that peer.
  if (status.code() == StatusCode::PeerFailed) {
    settle(status);
    return failure_;
  }
  std::string text = what + ": " + withoutRank(rank_, status.message());
  announce(Status(status.code(), text));
  settle(Status(status.code(), ofThisRank(text)));
  return failure_;
}

void Transport::tellStop() {
  if (!failure_.isOk() || std::exchange(hasToldStop_, true))
    return;
  announceStop();
}

void Transport::abort(const Status &reason) {
  if (!failure_.isOk())
    return;
  Status failure =
      reason.isOk() ? Status(StatusCode::Cancelled, "gave up") : reason;
  announce(failure);
  settle(failure);
}

//===----------------------------------------------------------------------===//
// Groups
//===----------------------------------------------------------------------===//

StatusOr<std::unique_ptr<Group>>
Transport::createGroup(const std::vector<int> &ranks, Deadline deadline) {
  DYNA_RETURN_IF_ERROR(failure_);
  auto refuse = [&](const char *why) {
    return Status::invalidArgument("rank " + std::to_string(rank_) + " of " +
                                   std::to_string(ranks_) + ": group " +
                                   listOf(ranks) + ": " + why);
  };
  std::vector<int> sorted = ranks;
  std::sort(sorted.begin(), sorted.end());
  if (std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end())
    return refuse("a rank stands there twice");
  if (!sorted.empty() && (sorted.front() < 0 || sorted.back() >= ranks_))
    return refuse("there is no such rank");
  auto self = std::find(ranks.begin(), ranks.end(), rank_);
  if (self == ranks.end())
    return refuse("this rank is not in it");
  auto group =
      makeGroup(ranks, static_cast<int>(self - ranks.begin()), deadline);
  if (!group.isOk())
    return fail("group " + listOf(ranks), group.status());
  return group;
}

StatusOr<Ticket> Group::start(std::vector<Collective> collectives,
                              void *stream) {
  if (collectives.empty())
    return Status::invalidArgument("a group starts at least one collective");
  for (const Collective &collective : collectives)
    DYNA_RETURN_IF_ERROR(checkCollective(collective, size(), index_));
  DYNA_RETURN_IF_ERROR(transport_.failure_);
  Traffic &traffic = transport_.traffic_;
  ++traffic.collectiveCalls;
  for (const Collective &collective : collectives) {
    ++traffic.collectives[static_cast<size_t>(collective.kind)];
    traffic.collectiveBytes[static_cast<size_t>(collective.kind)] +=
        collective.sentBytes(size(), index_);
    traffic.wholeBytes +=
        collective.wholeElements() * elementBytes(collective.element);
  }
  return startUncounted(std::move(collectives), stream);
}

StatusOr<Ticket> Group::startUncounted(std::vector<Collective> collectives,
                                       void *stream) {
  Transport::Description what;
  what.collectives = std::move(collectives);
  what.group = ranks_;
  Transport::MadeOperation operation = make(what.collectives, stream);
  return transport_.add(std::move(operation), std::move(what));
}

StatusOr<bool> Group::any(bool here, void *stream) {
  double votes = here ? 1 : 0;
  const Collective sum = Collective::flat(CollectiveKind::AllReduce, &votes,
                                          &votes, 1, DYNA_ELEMENT_F64);
  DYNA_RETURN_IF_ERROR(checkCollective(sum, size(), index_));
  DYNA_RETURN_IF_ERROR(transport_.failure_);
  DYNA_ASSIGN_OR_RETURN(Ticket ticket, startUncounted({sum}, stream));
  DYNA_RETURN_IF_ERROR(transport_.wait(ticket, stream, transport_.deadline()));
  return votes > 0;
}

Status Group::slice(const Collective &whole, void *) {
  DYNA_RETURN_IF_ERROR(checkCollective(whole, size(), index_));
  copyRows(whole.in, whole.sourceRows(size(), index_, index_), whole.out,
           whole.targetRows(size(), index_, index_));
  return Status::ok();
}

dyna_group dyna::toAbi(Group *group) {
  if (!group)
    return {1, 0, nullptr};
  return {group->size(), group->index(), group};
}
