//===- SwitchTimes.cpp - Computes times and bytes of switches -------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/SwitchTimes.h"

#include "runtime/planner/switch/PortLoads.h"
#include "runtime/sim/BucketTimes.h"

#include <algorithm>
#include <numeric>

namespace dyna {
namespace {

/// Computes how many bytes ranks hold at one time to pass on. A bucket brings them when
/// it begins. They are free when the last bucket that hands them on has certainly ended,
/// because a later one that needed its room has begun.
class PassingMemory {
public:
  PassingMemory(const SwitchMessages &plan, const PartOrder &order)
      : plan_(plan), order_(order), place_(plan_.parts.size(), 0),
        placeOf_(plan_.buckets.size(), -1) {
    for (size_t bucket = 0; bucket < plan.buckets.size(); ++bucket)
      bucketOf_.resize(plan.buckets[bucket].parts, static_cast<int>(bucket));
  }

  int64_t largest(int rank) {
    parts_.clear();
    for (int part = order_.first[rank]; part >= 0; part = order_.after[part]) {
      place_[part] = static_cast<int>(parts_.size());
      placeOf_[bucketOf_[part]] = place_[part];
      parts_.push_back(part);
    }
    findUsers();
    int64_t held = 0, most = 0;
    size_t next = 0;
    for (int part : parts_) {
      const int room = order_.room[part];
      const int ended = room < 0 ? 0 : place_[room] + 1;
      for (; next < freed_.size() && freed_[next].first < ended; ++next)
        held -= freed_[next].second;
      held += plan_.parts[part].passing;
      most = std::max(most, held);
    }
    for (int part : parts_)
      placeOf_[bucketOf_[part]] = -1;
    return most;
  }

private:
  void findUsers() {
    std::vector<int> last(parts_.size());
    for (size_t p = 0; p < parts_.size(); ++p) {
      last[p] = static_cast<int>(p);
      const int after = plan_.buckets[bucketOf_[parts_[p]]].after;
      if (plan_.parts[parts_[p]].handsOn && after >= 0 && placeOf_[after] >= 0)
        last[placeOf_[after]] = static_cast<int>(p);
    }
    freed_.clear();
    for (size_t p = 0; p < parts_.size(); ++p)
      if (const int64_t bytes = plan_.parts[parts_[p]].passing; bytes > 0)
        freed_.push_back({last[p], bytes});
    std::sort(freed_.begin(), freed_.end());
  }

  const SwitchMessages &plan_;
  const PartOrder &order_;
  std::vector<int> bucketOf_; ///< by part
  std::vector<int> place_;    ///< of each part among those of its rank
  std::vector<int> placeOf_;  ///< place by bucket; -1: none
  // State of one rank:
  std::vector<int> parts_;
  std::vector<std::pair<int, int64_t>> freed_; ///< after which place, bytes
};

/// Sums up the bytes of a plan.
class Counter {
public:
  Counter(const std::vector<SwitchTensor> &tensors,
          const SwitchNetwork &network, SwitchTimes &times)
      : tensors_(tensors), network_(network), times_(times), total_(network) {
    times.nodeBytes.assign(network.nodes(),
                           std::vector<int64_t>(network.nodes(), 0));
  }

  void count(const SwitchMessages &messages, Fusing fusing) {
    for (const SwitchMessages::Message &one : messages.messages) {
      const int from = network_.nodeOf(one.from), to = network_.nodeOf(one.to);
      (from == to ? times_.insideBytes : times_.betweenBytes) += one.bytes;
      times_.nodeBytes[from][to] += one.bytes;
      times_.messages += fusing == Fusing::None ? one.transfers : 1;
      total_.add(one.from, one.to, static_cast<double>(one.bytes));
    }
    for (const SwitchMessages::Part &part : messages.parts)
      times_.passingBytes = std::max(times_.passingBytes, part.passing);
    times_.portSeconds = total_.largest();
  }

  void countLocal(const SwitchPlan &plan) {
    for (const SwitchBucket &bucket : plan.buckets) {
      times_.transfers += static_cast<int64_t>(bucket.transfers.size());
      for (const SwitchTransfer &one : bucket.transfers)
        if (one.from == one.to)
          times_.localBytes +=
              one.box.volume() * tensors_[one.tensor].elementBytes;
    }
  }

  /// Bytes of both layouts, by rank.
  std::vector<int64_t> layouts() const {
    std::vector<int64_t> bytes(static_cast<size_t>(network_.ranks), 0);
    for (const SwitchTensor &tensor : tensors_)
      for (const auto *boxes : {&tensor.from, &tensor.to})
        for (const RankBox &one : *boxes)
          bytes[one.rank] += one.box.volume() * tensor.elementBytes;
    return bytes;
  }

private:
  const std::vector<SwitchTensor> &tensors_;
  const SwitchNetwork &network_;
  SwitchTimes &times_;
  PortLoads total_;
};

} // namespace

double secondsOf(const SwitchMessages &messages, const std::vector<int> &order,
                 const SwitchNetwork &network, int64_t bytesUnderWay) {
  return BucketTimes(messages, order, network, Fusing::Buckets, bytesUnderWay)
      .seconds();
}

SwitchTimes timesOf(const std::vector<SwitchTensor> &tensors,
                    const SwitchPlan &plan, const SwitchNetwork &network,
                    Fusing fusing, int64_t bytesUnderWay) {
  SwitchTimes times;
  const SwitchMessages messages =
      SwitchMessages::of(tensors, plan, network.ranks);
  std::vector<int> order(plan.buckets.size());
  std::iota(order.begin(), order.end(), 0);
  const BucketTimes buckets(messages, order, network, fusing, bytesUnderWay);
  times.seconds = buckets.seconds();
  Counter counter(tensors, network, times);
  counter.count(messages, fusing);
  counter.countLocal(plan);
  const std::vector<int64_t> layouts = counter.layouts();
  PassingMemory passing(messages, buckets.parts());
  for (int rank = 0; rank < network.ranks; ++rank)
    times.peakBytes =
        std::max(times.peakBytes,
                 layouts[static_cast<size_t>(rank)] + passing.largest(rank));
  return times;
}

} // namespace dyna
