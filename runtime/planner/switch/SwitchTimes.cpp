//===- SwitchTimes.cpp - What a switch takes ------------------------------===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//

#include "runtime/planner/switch/SwitchTimes.h"

#include <algorithm>
#include <limits>

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

/// The buckets that a rank has begun, in order.
class UnderWay {
public:
  /// Begins a bucket and returns when there is room for it. Earlier buckets end
  /// in order.
  double begin(int bucket, int64_t bytes, int64_t passing, int64_t limit) {
    for (; first_ < buckets_.size() && held_ + bytes > limit; ++first_) {
      ended_ = std::max(ended_, buckets_[first_].end);
      held_ -= buckets_[first_].bytes;
    }
    buckets_.push_back({bucket, bytes, passing, 0, buckets_.size(), first_});
    held_ += bytes;
    return ended_;
  }
  void end(double end) { buckets_.back().end = end; }

  /// The bucket begun last hands on what `after` brought.
  void handOn(int after) {
    auto brought = std::lower_bound(
        buckets_.begin(), buckets_.end(), after,
        [](const Bucket &one, int bucket) { return one.bucket < bucket; });
    if (brought != buckets_.end() && brought->bucket == after)
      brought->last = buckets_.size() - 1;
  }

  /// Returns the most bytes to pass on at one time: each from the bucket that
  /// brings it until the last that hands it on has certainly ended.
  int64_t largestPassing() const {
    std::vector<std::pair<size_t, int64_t>> freed; // last user, bytes
    for (const Bucket &one : buckets_)
      if (one.passing > 0)
        freed.push_back({one.last, one.passing});
    std::sort(freed.begin(), freed.end());
    int64_t held = 0, most = 0;
    size_t next = 0;
    for (const Bucket &one : buckets_) {
      for (; next < freed.size() && freed[next].first < one.ended; ++next)
        held -= freed[next].second;
      held += one.passing;
      most = std::max(most, held);
    }
    return most;
  }

private:
  struct Bucket {
    int bucket;
    int64_t bytes, passing;
    double end;
    size_t last;  ///< number of the rank's last bucket that hands on of these
    size_t ended; ///< number of the rank's buckets that end before it begins
  };
  std::vector<Bucket> buckets_;
  size_t first_ = 0; ///< of the buckets under way
  int64_t held_ = 0; ///< bytes under way
  double ended_ = 0; ///< when those before the first have ended
};

/// Simulates messages bucket by bucket with a clock for each port of each rank.
class Player {
public:
  Player(const SwitchMessages &plan, const SwitchNetwork &network,
         Fusing fusing, int64_t bytesUnderWay)
      : plan_(plan), network_(network), fusing_(fusing), limit_(bytesUnderWay),
        ranks_(static_cast<size_t>(network.ranks)), states_(ranks_),
        underWay_(ranks_), uses_(4 * ranks_), clock_(uses_.size(), 0),
        arrived_(plan.buckets.size()), users_(plan.buckets.size(), 0),
        places_(plan.buckets.size(), -1) {
    for (const SwitchMessages::Bucket &bucket : plan.buckets)
      if (bucket.after >= 0)
        ++users_[bucket.after];
    secondsPerByte_[0] = secondsPerByte(network.betweenRate);
    secondsPerByte_[1] = secondsPerByte(network.insideRate);
  }

  void play(int index) {
    const SwitchMessages::Bucket &bucket = plan_.buckets[index];
    const SwitchMessages::Bucket before =
        index > 0 ? plan_.buckets[index - 1] : SwitchMessages::Bucket();
    const Messages messages = {plan_.messages.data() + before.messages,
                               plan_.messages.data() + bucket.messages};
    const Parts parts = {plan_.parts.data() + before.parts,
                         plan_.parts.data() + bucket.parts};
    places_[index] = played_++;
    begin(messages, parts, places_[index],
          bucket.after < 0 ? -1 : places_[bucket.after]);
    loadPorts(messages, bucket.after);
    end(messages, parts, index, bucket.after);
  }

  double seconds() const { return seconds_; }
  int64_t largestPassing(int rank) const {
    return underWay_[rank].largestPassing();
  }

private:
  using Message = SwitchMessages::Message;
  template <typename Item> struct Range {
    const Item *first, *last;
    const Item *begin() const { return first; }
    const Item *end() const { return last; }
  };
  using Messages = Range<Message>;
  using Parts = Range<SwitchMessages::Part>;

  /// A rank in the bucket that is played.
  struct State {
    int64_t sent = 0, received = 0;
    double room = 0, end = 0;
  };
  /// A port in the bucket that is played.
  struct Use {
    double load = 0, ready = std::numeric_limits<double>::infinity();
    int transfers = 0;
  };

  bool isInside(size_t port) const { return port >= 2 * ranks_; }

  /// Indices into `uses_` and `clock_`: the sender's port and the receiver's.
  std::pair<size_t, size_t> portsOf(const Message &message) const {
    const size_t first =
        network_.nodeOf(message.from) == network_.nodeOf(message.to)
            ? 2 * ranks_
            : 0;
    return {first + static_cast<size_t>(message.from),
            first + ranks_ + static_cast<size_t>(message.to)};
  }

  /// `place` and `after` number buckets in the order in which they are played.
  void begin(Messages messages, Parts parts, int place, int after) {
    for (const auto &part : parts)
      states_[part.rank] = State();
    for (const Message &message : messages) {
      states_[message.from].sent += message.bytes;
      states_[message.to].received += message.bytes;
    }
    for (const auto &part : parts) {
      State &state = states_[part.rank];
      state.room = underWay_[part.rank].begin(
          place, std::max(state.sent, state.received), part.passing, limit_);
      if (part.handsOn)
        underWay_[part.rank].handOn(after);
    }
  }

  /// Moves the clocks of the ports that the messages go over.
  void loadPorts(Messages messages, int after) {
    for (const Message &message : messages) {
      const double ready = after < 0 ? 0 : arrived_[after][message.from];
      auto [out, in] = portsOf(message);
      for (size_t port : {out, in}) {
        Use &use = uses_[port];
        if (use.transfers == 0)
          ports_.push_back(port);
        use.transfers += message.transfers;
        use.ready = std::min(use.ready, ready);
        use.load += static_cast<double>(message.bytes) *
                    secondsPerByte_[isInside(port)];
      }
    }
    for (size_t port : ports_) {
      const Use &use = uses_[port];
      const double latency =
          isInside(port) ? network_.insideLatency : network_.betweenLatency;
      clock_[port] =
          std::max({clock_[port], use.ready, states_[port % ranks_].room}) +
          use.load + latency * (fusing_ == Fusing::None ? use.transfers : 1);
      uses_[port] = Use();
    }
    ports_.clear();
  }

  /// A message is there when both of its ports are done with the bucket.
  void end(Messages messages, Parts parts, int index, int after) {
    std::vector<double> arrived;
    if (users_[index] > 0)
      arrived.assign(ranks_, 0);
    for (const Message &message : messages) {
      auto [out, in] = portsOf(message);
      const double end = std::max(clock_[out], clock_[in]);
      for (int rank : {message.from, message.to})
        states_[rank].end = std::max(states_[rank].end, end);
      if (!arrived.empty())
        arrived[message.to] = std::max(arrived[message.to], end);
    }
    for (const auto &part : parts) {
      underWay_[part.rank].end(states_[part.rank].end);
      seconds_ = std::max(seconds_, states_[part.rank].end);
    }
    // Buckets that hand on wait for what came in all buckets before, too.
    if (after >= 0) {
      for (size_t rank = 0; rank < arrived.size(); ++rank)
        arrived[rank] = std::max(arrived[rank], arrived_[after][rank]);
      if (--users_[after] == 0)
        arrived_[after] = {};
    }
    arrived_[index] = std::move(arrived);
  }

  const SwitchMessages &plan_;
  const SwitchNetwork &network_;
  const Fusing fusing_;
  const int64_t limit_;
  const size_t ranks_;
  double secondsPerByte_[2];  ///< between nodes, inside of them
  std::vector<State> states_; ///< by rank
  std::vector<UnderWay> underWay_;
  std::vector<Use> uses_; ///< by port and rank
  std::vector<double> clock_;
  std::vector<size_t> ports_; ///< of the bucket that is played
  /// By bucket and rank, for buckets that others come after.
  std::vector<std::vector<double>> arrived_;
  std::vector<int> users_;  ///< of each bucket, those that still come after it
  std::vector<int> places_; ///< of each bucket in the order of play
  int played_ = 0;
  double seconds_ = 0;
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

/// Joins the transfers of a bucket to messages.
class Joiner {
public:
  Joiner(const std::vector<SwitchTensor> &tensors, int ranks,
         SwitchMessages &result)
      : tensors_(tensors), result_(result),
        parts_(static_cast<size_t>(ranks), -1), heads_(parts_.size(), -1),
        message_(parts_.size(), -1) {}

  void add(const SwitchBucket &bucket) {
    firstPart_ = result_.parts.size();
    next_.assign(bucket.transfers.size(), -1);
    for (size_t i = 0; i < bucket.transfers.size(); ++i) {
      const SwitchTransfer &one = bucket.transfers[i];
      partOf(one.from).handsOn |= one.source == SwitchPlace::Passing;
      SwitchMessages::Part &receiver = partOf(one.to);
      if (one.target == SwitchPlace::Passing)
        receiver.passing += bytesOf(one);
      if (one.from == one.to)
        continue;
      next_[i] = heads_[one.from];
      heads_[one.from] = static_cast<int>(i);
    }
    for (size_t p = firstPart_; p < result_.parts.size(); ++p)
      joinSender(bucket, result_.parts[p].rank);
    for (size_t p = firstPart_; p < result_.parts.size(); ++p)
      parts_[result_.parts[p].rank] = -1;
    result_.buckets.push_back(
        {result_.messages.size(), result_.parts.size(), bucket.after});
  }

private:
  int64_t bytesOf(const SwitchTransfer &one) const {
    return one.box.volume() * tensors_[one.tensor].elementBytes;
  }

  SwitchMessages::Part &partOf(int rank) {
    if (parts_[rank] < 0) {
      parts_[rank] = static_cast<int>(result_.parts.size() - firstPart_);
      result_.parts.push_back({rank, false, 0});
    }
    return result_.parts[firstPart_ + static_cast<size_t>(parts_[rank])];
  }

  /// One message to each rank that the sender sends something to.
  void joinSender(const SwitchBucket &bucket, int from) {
    const auto first = static_cast<int64_t>(result_.messages.size());
    for (int i = heads_[from]; i >= 0; i = next_[static_cast<size_t>(i)]) {
      const SwitchTransfer &one = bucket.transfers[static_cast<size_t>(i)];
      if (message_[one.to] < first) {
        message_[one.to] = static_cast<int64_t>(result_.messages.size());
        result_.messages.push_back({from, one.to, 0, 0});
      }
      auto &message = result_.messages[static_cast<size_t>(message_[one.to])];
      ++message.transfers;
      message.bytes += bytesOf(one);
    }
    heads_[from] = -1;
  }

  const std::vector<SwitchTensor> &tensors_;
  SwitchMessages &result_;
  size_t firstPart_ = 0;
  std::vector<int> parts_;       ///< by rank, in the bucket; -1: none
  std::vector<int> heads_;       ///< of each sender, its last transfer
  std::vector<int> next_;        ///< of each transfer, one before it
  std::vector<int64_t> message_; ///< of each receiver the last to it
};

} // namespace

SwitchMessages SwitchMessages::of(const std::vector<SwitchTensor> &tensors,
                                  const SwitchPlan &plan, int ranks) {
  SwitchMessages result;
  Joiner joiner(tensors, ranks, result);
  for (const SwitchBucket &bucket : plan.buckets)
    joiner.add(bucket);
  return result;
}

double secondsOf(const SwitchMessages &messages, const std::vector<int> &order,
                 const SwitchNetwork &network, int64_t bytesUnderWay) {
  Player player(messages, network, Fusing::Buckets, bytesUnderWay);
  for (int index : order)
    player.play(index);
  return player.seconds();
}

SwitchTimes timesOf(const std::vector<SwitchTensor> &tensors,
                    const SwitchPlan &plan, const SwitchNetwork &network,
                    Fusing fusing, int64_t bytesUnderWay) {
  SwitchTimes times;
  const SwitchMessages messages =
      SwitchMessages::of(tensors, plan, network.ranks);
  Player player(messages, network, fusing, bytesUnderWay);
  for (size_t b = 0; b < plan.buckets.size(); ++b)
    player.play(static_cast<int>(b));
  times.seconds = player.seconds();
  Counter counter(tensors, network, times);
  counter.count(messages, fusing);
  counter.countLocal(plan);
  const std::vector<int64_t> layouts = counter.layouts();
  for (int rank = 0; rank < network.ranks; ++rank)
    times.peakBytes =
        std::max(times.peakBytes, layouts[static_cast<size_t>(rank)] +
                                      player.largestPassing(rank));
  return times;
}

} // namespace dyna
