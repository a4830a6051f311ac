//===- BucketFlows.cpp - Simulates buckets on shared ports ----------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/sim/BucketFlows.h"

namespace dyna {

PartMessages::PartMessages(const PlanWork &work)
    : begins_(work.parts() + 1, 0) {
  if (work.parts() == 0)
    return;
  const SwitchMessages &plan = work.switches();
  std::vector<int> partOf(work.ranks(), -1);
  ends_.reserve(plan.messages.size());
  for (int bucket = 0; bucket < static_cast<int>(plan.buckets.size());
       ++bucket) {
    for (size_t part = plan.firstPart(bucket);
         part < plan.buckets[bucket].parts; ++part)
      partOf[plan.parts[part].rank] = static_cast<int>(part);
    for (size_t m = plan.firstMessage(bucket);
         m < plan.buckets[bucket].messages; ++m) {
      const SwitchMessages::Message &message = plan.messages[m];
      ends_.push_back({partOf[message.from], partOf[message.to]});
      ++begins_[ends_.back().first + 1];
      ++begins_[ends_.back().second + 1];
    }
  }
  for (int part = 0; part < work.parts(); ++part)
    begins_[part + 1] += begins_[part];
  list_.resize(2 * ends_.size());
  std::vector<int> next(begins_.begin(), begins_.end() - 1);
  for (int m = 0; m < static_cast<int>(ends_.size()); ++m)
    for (int part : {from(m), to(m)})
      list_[next[part]++] = m;
}

BucketFlows::BucketFlows(const PlanWork &work, const PartOrder &order,
                         SharedLinks &links)
    : work_(work), plan_(work.switches()), messages_(work), links_(links),
      uses_(static_cast<size_t>(kPorts) * work.parts()),
      turn_(static_cast<size_t>(kPorts) * work.ranks(), -1),
      isMoving_(turn_.size(), false), hasBegun_(work.parts(), false),
      done_(plan_.messages.size(), 0) {
  for (int part = 0; part < work.parts(); ++part)
    left_.push_back(messages_.of(part).size());
  for (int m = 0; m < static_cast<int>(plan_.messages.size()); ++m) {
    const auto [out, in] = portsOf(work.network(), plan_.messages[m]);
    for (int use :
         {useOf(messages_.from(m), out), useOf(messages_.to(m), in)}) {
      ++uses_[use].messages;
      ++uses_[use].missing;
      uses_[use].bytes += plan_.messages[m].bytes;
    }
  }
  chainUses(order);
}

/// Links the uses of each port in the order of their parts.
void BucketFlows::chainUses(const PartOrder &order) {
  for (int rank = 0; rank < work_.ranks(); ++rank) {
    int last[kPorts] = {-1, -1, -1, -1};
    for (int part = order.first[rank]; part >= 0; part = order.after[part])
      for (int port = 0; port < kPorts; ++port) {
        const int use = useOf(part, static_cast<Port>(port));
        if (uses_[use].messages == 0)
          continue;
        (last[port] < 0 ? turn_[kPorts * rank + port]
                        : uses_[last[port]].after) = use;
        last[port] = use;
      }
  }
}

int BucketFlows::portOf(int use) const {
  return kPorts * plan_.parts[use / kPorts].rank + use % kPorts;
}

void BucketFlows::begin(int part, double time, std::vector<int> &ended) {
  hasBegun_[part] = true;
  if (left_[part] == 0)
    ended.push_back(part);
  std::vector<int> touched;
  for (int m : messages_.of(part)) {
    if (!hasBegun_[messages_.peer(m, part)])
      continue;
    const SwitchMessages::Message &message = plan_.messages[m];
    const auto [out, in] = portsOf(work_.network(), message);
    const double seconds =
        static_cast<double>(message.bytes) *
        work_.network().secondsPerByte(out == Port::InsideOut);
    for (int use :
         {useOf(messages_.from(m), out), useOf(messages_.to(m), in)}) {
      --uses_[use].missing;
      uses_[use].ready += seconds;
      touched.push_back(use);
    }
  }
  for (int use : touched)
    if (turn_[portOf(use)] == use)
      move(use, time);
}

void BucketFlows::move(int number, double time) {
  Use &use = uses_[number];
  const int port = portOf(number);
  const double seconds = use.ready;
  use.ready = 0;
  if (isMoving_[port]) {
    if (seconds > 0)
      links_.lengthen(port, seconds, time);
    return;
  }
  // A burst that goes on exactly at its end has no new latency.
  const bool isBurst = use.drained != time;
  if (!isBurst && seconds == 0 && use.missing > 0)
    return;
  if (use.drained < 0)
    use.start = time;
  isMoving_[port] = true;
  links_.addFlow(port, seconds, isBurst, time);
}

void BucketFlows::endFlow(int port, double time, std::vector<int> &ended) {
  const int number = turn_[port];
  isMoving_[port] = false;
  uses_[number].drained = time;
  if (uses_[number].missing > 0)
    return; // the next bucket waits until all of this one has moved
  complete(number, time, ended);
  const int next = turn_[port] = uses_[number].after;
  if (next >= 0 && uses_[next].missing < uses_[next].messages)
    move(next, time);
}

void BucketFlows::complete(int number, double time, std::vector<int> &ended) {
  const int part = number / kPorts;
  const auto port = static_cast<Port>(number % kPorts);
  times_.push_back(
      {part, port, uses_[number].bytes, {uses_[number].start, time}});
  for (int m : messages_.of(part)) {
    const auto [out, in] = portsOf(work_.network(), plan_.messages[m]);
    if ((messages_.from(m) == part ? out : in) != port || ++done_[m] < 2)
      continue;
    for (int end : {messages_.from(m), messages_.to(m)})
      if (--left_[end] == 0)
        ended.push_back(end);
  }
}

} // namespace dyna
