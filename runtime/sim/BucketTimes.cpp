//===- BucketTimes.cpp - Times of buckets on ports of their own ----------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/BucketTimes.h"

#include <algorithm>

namespace dyna {

PartOrder::PartOrder(const PlanWork &work, int64_t bytesUnderWay)
    : before(work.parts(), none), after(work.parts(), none),
      room(work.parts(), none), first(work.ranks(), none) {
  auto bytesOf = [&](int part) {
    const SwitchMessages::Part &one = work.switches().parts[part];
    return std::max(one.sent, one.received);
  };
  for (int rank = 0; rank < work.ranks() && work.parts() > 0; ++rank) {
    // `oldest` to `last` are under way.
    int oldest = none, last = none, ended = none;
    int64_t bytes = 0;
    for (const PlanWork::Step &step : work.steps(rank)) {
      if (step.kind != PlanWork::Step::Kind::Start || step.count == 0 ||
          work.use(step.first) >= work.parts())
        continue;
      const int part = work.use(step.first);
      (last == none ? first[rank] : after[last]) = part;
      before[part] = last;
      if (oldest == none)
        oldest = part;
      bytes += bytesOf(part);
      for (; oldest != part && bytes > bytesUnderWay; oldest = after[oldest]) {
        bytes -= bytesOf(oldest);
        ended = oldest;
      }
      room[part] = ended;
      last = part;
    }
  }
}

BucketTimes::BucketTimes(const PlanWork &work, const PartOrder &order)
    : plan_(work.switches()), work_(work), order_(order),
      ranks_(static_cast<size_t>(work.ranks())),
      isFused_(work.fusing() == Fusing::Buckets), begin_(plan_.parts.size(), 0),
      end_(begin_), ended_(begin_), clock_(kPorts * ranks_, 0),
      rankBegin_(ranks_, 0), rankEnd_(ranks_, 0), uses_(clock_.size()) {
  for (const bool inside : {false, true}) {
    secondsPerByte_[inside] = work.network().secondsPerByte(inside);
    latency_[inside] = work.network().latency(inside);
  }
  for (int rank = 0; rank < work.ranks(); ++rank)
    node_.push_back(work.network().nodeOf(rank));
  for (size_t bucket = 0; bucket < plan_.buckets.size(); ++bucket)
    missing_.push_back(
        static_cast<int>(plan_.buckets[bucket].parts -
                         plan_.firstPart(static_cast<int>(bucket))));
}

bool BucketTimes::begin(int part, double time) {
  const int room = order_.room[part];
  begin_[part] = room < 0 ? time : std::max(time, ended_[room]);
  const int bucket = work_.bucketOf(part);
  if (--missing_[bucket] > 0)
    return false;
  compute(bucket);
  return true;
}

void BucketTimes::compute(int bucket) {
  const size_t first = plan_.firstPart(bucket);
  const size_t last = plan_.buckets[bucket].parts;
  for (size_t part = first; part < last; ++part) {
    const int rank = plan_.parts[part].rank;
    rankBegin_[rank] = rankEnd_[rank] = begin_[part];
  }
  const auto *begin = plan_.messages.data() + plan_.firstMessage(bucket);
  const auto *end = plan_.messages.data() + plan_.buckets[bucket].messages;
  addLoads(begin, end);
  bool hasGaps = false;
  for (size_t port : ports_) {
    Use &use = uses_[port];
    const double latency = latencyOf(port) * (isFused_ ? 1 : use.transfers);
    const double start = std::max(clock_[port], use.first);
    if (isFused_ && start < use.last)
      hasGaps = true; // some of its messages cannot move yet
    else
      clock_[port] = start + use.load + latency;
  }
  if (hasGaps)
    moveGaps(begin, end);
  for (const auto *message = begin; message != end; ++message) {
    const bool inside = isInside(*message);
    const double done = std::max(clock_[portOf(inside, false, message->from)],
                                 clock_[portOf(inside, true, message->to)]);
    for (int rank : {message->from, message->to})
      rankEnd_[rank] = std::max(rankEnd_[rank], done);
  }
  for (size_t port : ports_)
    uses_[port] = Use();
  ports_.clear();
  for (size_t part = first; part < last; ++part) {
    const int before = order_.before[part];
    end_[part] = rankEnd_[plan_.parts[part].rank];
    ended_[part] =
        before < 0 ? end_[part] : std::max(ended_[before], end_[part]);
  }
}

void BucketTimes::addLoads(const SwitchMessages::Message *begin,
                           const SwitchMessages::Message *end) {
  for (const auto *message = begin; message != end; ++message) {
    const bool inside = isInside(*message);
    const double time = now(*message);
    const double load =
        static_cast<double>(message->bytes) * secondsPerByte_[inside];
    for (size_t port : {portOf(inside, false, message->from),
                        portOf(inside, true, message->to)}) {
      Use &use = uses_[port];
      if (use.transfers == 0)
        ports_.push_back(port);
      use.transfers += message->transfers;
      use.first = std::min(use.first, time);
      use.last = std::max(use.last, time);
      use.load += load;
    }
  }
}

/// Moves messages burst by burst on ports that may wait between them.
void BucketTimes::moveGaps(const SwitchMessages::Message *begin,
                           const SwitchMessages::Message *end) {
  auto waits = [&](size_t port) {
    return std::max(clock_[port], uses_[port].first) < uses_[port].last;
  };
  arrivals_.clear();
  for (const auto *message = begin; message != end; ++message) {
    const bool inside = isInside(*message);
    for (size_t port : {portOf(inside, false, message->from),
                        portOf(inside, true, message->to)})
      if (waits(port))
        arrivals_.push_back(
            {port, now(*message),
             static_cast<double>(message->bytes) * secondsPerByte_[inside]});
  }
  std::sort(arrivals_.begin(), arrivals_.end());
  for (size_t i = 0; i < arrivals_.size();) {
    const size_t port = arrivals_[i].port;
    double time = clock_[port];
    for (bool isFirst = true; i < arrivals_.size() && arrivals_[i].port == port;
         ++i, isFirst = false) {
      if (isFirst || arrivals_[i].time > time)
        time = std::max(time, arrivals_[i].time) + latencyOf(port);
      time += arrivals_[i].load;
    }
    clock_[port] = time;
  }
}

} // namespace dyna
