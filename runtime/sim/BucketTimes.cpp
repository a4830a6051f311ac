//===- BucketTimes.cpp - Simulates a switch alone ------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/BucketTimes.h"

#include <algorithm>

namespace dyna {

PartOrder::PartOrder(size_t parts, size_t ranks)
    : before(parts, none), after(parts, none), room(parts, none),
      first(ranks, none), underWay_(ranks) {}

PartOrder::PartOrder(const PlanWork &work, int64_t bytesUnderWay)
    : PartOrder(static_cast<size_t>(work.parts()),
                static_cast<size_t>(work.ranks())) {
  for (int rank = 0; rank < work.ranks() && work.parts() > 0; ++rank)
    for (const PlanWork::Step &step : work.steps(rank))
      if (step.kind == PlanWork::Step::Kind::Start && step.count > 0 &&
          work.use(step.first) < work.parts())
        add(work.switches(), work.use(step.first), bytesUnderWay);
}

PartOrder::PartOrder(const SwitchMessages &plan, const std::vector<int> &order,
                     int ranks, int64_t bytesUnderWay)
    : PartOrder(plan.parts.size(), static_cast<size_t>(ranks)) {
  for (int bucket : order)
    for (size_t part = plan.firstPart(bucket);
         part < plan.buckets[bucket].parts; ++part)
      add(plan, static_cast<int>(part), bytesUnderWay);
}

void PartOrder::add(const SwitchMessages &plan, int part, int64_t limit) {
  auto bytesOf = [&](int one) {
    return std::max(plan.parts[one].sent, plan.parts[one].received);
  };
  const int rank = plan.parts[part].rank;
  UnderWay &own = underWay_[rank];
  (own.last == none ? first[rank] : after[own.last]) = part;
  before[part] = own.last;
  if (own.oldest == none)
    own.oldest = part;
  own.bytes += bytesOf(part);
  for (; own.oldest != part && own.bytes > limit;
       own.oldest = after[own.oldest]) {
    own.bytes -= bytesOf(own.oldest);
    own.ended = own.oldest;
  }
  room[part] = own.ended;
  own.last = part;
}

BucketTimes::BucketTimes(const SwitchMessages &plan,
                         const std::vector<int> &order,
                         const SwitchNetwork &network, Fusing fusing,
                         int64_t bytesUnderWay)
    : plan_(plan), ranks_(static_cast<size_t>(network.ranks)),
      isFused_(fusing == Fusing::Buckets),
      order_(plan, order, network.ranks, bytesUnderWay), now_(ranks_, 0),
      arrived_(plan.buckets.size()), begin_(plan.parts.size(), 0), end_(begin_),
      ended_(begin_), clock_(kPorts * ranks_, 0), rankBegin_(ranks_, 0),
      rankEnd_(ranks_, 0), uses_(clock_.size()) {
  for (const bool inside : {false, true}) {
    secondsPerByte_[inside] = network.secondsPerByte(inside);
    latency_[inside] = network.latency(inside);
  }
  for (int rank = 0; rank < network.ranks; ++rank)
    node_.push_back(network.nodeOf(rank));
  simulate(order);
}

void BucketTimes::simulate(const std::vector<int> &order) {
  for (const SwitchMessages::Bucket &bucket : plan_.buckets)
    if (bucket.after >= 0 && arrived_[bucket.after].empty())
      arrived_[bucket.after].assign(ranks_, 0);
  for (int bucket : order) {
    begin(bucket);
    compute(bucket);
    std::vector<double> &arrived = arrived_[bucket];
    for (size_t part = plan_.firstPart(bucket);
         part < plan_.buckets[bucket].parts; ++part) {
      seconds_ = std::max(seconds_, end_[part]);
      if (!arrived.empty())
        arrived[static_cast<size_t>(plan_.parts[part].rank)] = end_[part];
    }
  }
}

void BucketTimes::begin(int bucket) {
  const int after = plan_.buckets[bucket].after;
  for (size_t part = plan_.firstPart(bucket);
       part < plan_.buckets[bucket].parts; ++part) {
    const auto rank = static_cast<size_t>(plan_.parts[part].rank);
    for (int b = after; b >= 0; b = plan_.buckets[b].after)
      now_[rank] = std::max(now_[rank], arrived_[b][rank]);
    const int room = order_.room[part];
    begin_[part] = room < 0 ? now_[rank] : std::max(now_[rank], ended_[room]);
  }
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
