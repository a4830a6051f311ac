//===- SwitchTimes.cpp - What a switch takes ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/SwitchTimes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

namespace dyna {
namespace {

double secondsPerByte(double rate) { return rate > 0 ? 1 / rate : 0; }

} // namespace

PortLoads::PortLoads(const SwitchNetwork &network)
    : network_(&network), insideSeconds_(secondsPerByte(network.insideRate)),
      betweenSeconds_(secondsPerByte(network.betweenRate)) {
  for (std::vector<double> &port : seconds_)
    port.assign(network.ranks, 0);
}

void PortLoads::add(int from, int to, double bytes) {
  if (from == to)
    return;
  const bool isInside = network_->nodeOf(from) == network_->nodeOf(to);
  const double seconds = bytes * (isInside ? insideSeconds_ : betweenSeconds_);
  at(isInside ? Port::InsideOut : Port::NetworkOut, from) += seconds;
  at(isInside ? Port::InsideIn : Port::NetworkIn, to) += seconds;
}

double PortLoads::largest() const {
  double largest = 0;
  for (const std::vector<double> &port : seconds_)
    for (double seconds : port)
      largest = std::max(largest, seconds);
  return largest;
}

namespace {

/// Walks a plan bucket by bucket with a clock for each port of each rank.
class Player {
public:
  Player(const std::vector<SwitchTensor> &tensors, const SwitchPlan &plan,
         const SwitchNetwork &network, Fusing fusing)
      : tensors_(tensors), plan_(plan), network_(network), fusing_(fusing),
        total_(network), clock_(network) {
    arrived_.assign(plan.buckets.size(), {});
    underWay_.assign(network.ranks, {});
    passed_.assign(network.ranks, {});
    times_.nodeBytes.assign(network.nodes(),
                            std::vector<int64_t>(network.nodes(), 0));
  }

  SwitchTimes play() {
    for (size_t b = 0; b < plan_.buckets.size(); ++b)
      playBucket(b);
    times_.seconds = end_;
    times_.peakBytes = fullestRank();
    times_.portSeconds = total_.largest();
    return times_;
  }

private:
  /// A bucket that a rank has a part in.
  struct Passed {
    int bucket;
    int64_t bytes; ///< that it brings to be passed on
    /// Of the rank's own buckets the last that hands on of them.
    size_t last;
  };
  struct Message {
    int from, to;
    bool operator<(const Message &other) const {
      return from != other.from ? from < other.from : to < other.to;
    }
  };

  void playBucket(size_t index) {
    const SwitchBucket &bucket = plan_.buckets[index];
    std::map<int, int64_t> passing;
    sizes_.clear();
    std::set<int> ranks;
    for (const SwitchTransfer &one : bucket.transfers) {
      int64_t bytes = one.box.volume() * tensors_[one.tensor].elementBytes;
      count(one, bytes);
      if (one.target == SwitchPlace::Passing)
        times_.passingBytes =
            std::max(times_.passingBytes, passing[one.to] += bytes);
      if (one.source == SwitchPlace::Passing)
        handOn(one.from, bucket.after);
      if (one.from != one.to)
        sizes_.push_back({{one.from, one.to}, bytes});
      ranks.insert(one.from);
      ranks.insert(one.to);
    }
    for (int rank : ranks) {
      std::vector<Passed> &own = passed_[rank];
      own.push_back({static_cast<int>(index), passing[rank], own.size()});
    }
    std::sort(sizes_.begin(), sizes_.end(),
              [](const auto &a, const auto &b) { return a.first < b.first; });
    PortLoads load(network_);
    std::vector<std::pair<Message, int>> messages; // and transfers of each
    for (const auto &[message, bytes] : sizes_) {
      load.add(message.from, message.to, static_cast<double>(bytes));
      total_.add(message.from, message.to, static_cast<double>(bytes));
      if (messages.empty() || messages.back().first < message)
        messages.push_back({message, 0});
      ++messages.back().second;
    }
    times_.messages += static_cast<int64_t>(
        fusing_ == Fusing::None ? sizes_.size() : messages.size());
    advance(index, load, messages);
  }

  void count(const SwitchTransfer &one, int64_t bytes) {
    ++times_.transfers;
    const int from = network_.nodeOf(one.from), to = network_.nodeOf(one.to);
    (one.from == one.to ? times_.localBytes
     : from == to       ? times_.insideBytes
                        : times_.betweenBytes) += bytes;
    if (one.from != one.to)
      times_.nodeBytes[from][to] += bytes;
  }

  double readyOf(int bucket, int rank) const {
    if (bucket < 0)
      return 0;
    auto at = arrived_[bucket].find(rank);
    return at == arrived_[bucket].end() ? 0 : at->second;
  }

  /// A bucket of a rank, the next of its own, hands on what `after` brought it.
  void handOn(int rank, int after) {
    std::vector<Passed> &own = passed_[rank];
    auto brought = std::lower_bound(
        own.begin(), own.end(), after,
        [](const Passed &one, int bucket) { return one.bucket < bucket; });
    if (brought != own.end() && brought->bucket == after)
      brought->last = own.size();
  }

  int64_t fullestRank() const {
    std::vector<int64_t> bytes(network_.ranks, 0);
    for (const SwitchTensor &tensor : tensors_)
      for (const auto *boxes : {&tensor.from, &tensor.to})
        for (const RankBox &one : *boxes)
          bytes[one.rank] += one.box.volume() * tensor.elementBytes;
    int64_t most = 0;
    for (int rank = 0; rank < network_.ranks; ++rank) {
      const std::vector<Passed> &passed = passed_[rank];
      std::vector<int64_t> freed(passed.size() + kBucketsUnderWay);
      int64_t held = 0, passing = 0;
      for (size_t i = 0; i < passed.size(); ++i) {
        freed[passed[i].last + kBucketsUnderWay] += passed[i].bytes;
        held += passed[i].bytes - freed[i];
        passing = std::max(passing, held);
      }
      most = std::max(most, bytes[rank] + passing);
    }
    return most;
  }

  std::pair<Port, Port> portsOf(const Message &message) const {
    return network_.nodeOf(message.from) == network_.nodeOf(message.to)
               ? std::pair(Port::InsideOut, Port::InsideIn)
               : std::pair(Port::NetworkOut, Port::NetworkIn);
  }

  void advance(size_t index, const PortLoads &load,
               const std::vector<std::pair<Message, int>> &messages) {
    struct Use {
      int transfers = 0;
      double ready = std::numeric_limits<double>::infinity();
    };
    std::map<std::pair<Port, int>, Use> used;
    const int after = plan_.buckets[index].after;
    for (const auto &[message, transfers] : messages) {
      auto [out, in] = portsOf(message);
      for (auto key :
           {std::pair(out, message.from), std::pair(in, message.to)}) {
        Use &use = used[key];
        use.transfers += transfers;
        use.ready = std::min(use.ready, readyOf(after, message.from));
      }
    }
    for (const auto &[key, use] : used) {
      const auto [port, rank] = key;
      const bool isInside = port == Port::InsideOut || port == Port::InsideIn;
      double latency =
          isInside ? network_.insideLatency : network_.betweenLatency;
      clock_.at(port, rank) =
          std::max({clock_.at(port, rank), use.ready, roomAt(rank)}) +
          load.at(port, rank) +
          latency * (fusing_ == Fusing::None ? use.transfers : 1);
    }
    // A message is there when both of its ports are done with the bucket.
    std::map<int, double> &arrived = arrived_[index];
    std::map<int, double> done;
    for (const auto &[message, transfers] : messages) {
      auto [out, in] = portsOf(message);
      double end =
          std::max(clock_.at(out, message.from), clock_.at(in, message.to));
      end_ = std::max(end_, end);
      for (int rank : {message.from, message.to})
        done[rank] = std::max(done[rank], end);
      arrived[message.to] = std::max(arrived[message.to], end);
    }
    for (const auto &[rank, end] : done)
      underWay_[rank].push_back(end);
    // What came in the buckets before counts, too.
    if (after >= 0)
      for (const auto &[rank, end] : arrived_[after])
        arrived[rank] = std::max(arrived[rank], end);
  }

  /// When a rank may begin another bucket.
  double roomAt(int rank) const {
    const std::vector<double> &ends = underWay_[rank];
    return ends.size() < kBucketsUnderWay
               ? 0
               : ends[ends.size() - kBucketsUnderWay];
  }

  const std::vector<SwitchTensor> &tensors_;
  const SwitchPlan &plan_;
  const SwitchNetwork &network_;
  const Fusing fusing_;
  PortLoads total_, clock_;
  double end_ = 0;
  std::vector<std::map<int, double>> arrived_; ///< by bucket and rank
  /// Of each rank the ends of the buckets that it has a part in.
  std::vector<std::vector<double>> underWay_;
  std::vector<std::vector<Passed>> passed_; ///< of each rank
  std::vector<std::pair<Message, int64_t>> sizes_;
  SwitchTimes times_;
};

} // namespace

SwitchTimes timesOf(const std::vector<SwitchTensor> &tensors,
                    const SwitchPlan &plan, const SwitchNetwork &network,
                    Fusing fusing) {
  return Player(tensors, plan, network, fusing).play();
}

} // namespace dyna
