//===- BucketTimes.h - Simulates a switch alone -----------------*- C++ -*-===//
// Part of Dyna. SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Computes when the buckets of a switch end (SwitchPlan.h). A message can move as
// soon as both its ranks have begun the bucket. Each port of a rank moves one bucket
// after another, in the order in which the rank starts them. Within a bucket it moves
// the messages that can move. A burst of messages takes one latency, and then bytes
// over the port's rate. A message ends when both its ports have moved the bucket.
//
// A rank begins a bucket when it has started it and when the bytes that it has under
// way stay within a limit. A larger bucket goes alone.
//
// Steps are simulated event by event (BucketFlows.h), with other transfers on the ports.
// A switch alone needs no events, because all ranks start its buckets in one order. This
// file computes it bucket by bucket. It gives the same times as a program of its buckets.
//
//===----------------------------------------------------------------------===//

#ifndef DYNA_RUNTIME_SIM_BUCKETTIMES_H
#define DYNA_RUNTIME_SIM_BUCKETTIMES_H

#include "runtime/sim/PlanWork.h"
#include "runtime/sim/TaskGraph.h"

#include <limits>
#include <vector>

namespace dyna {

/// The parts of each rank in the order in which it starts them.
class PartOrder {
public:
  static constexpr int none = -1;

  /// Reads the programs of a step. O(steps).
  PartOrder(const PlanWork &work, int64_t bytesUnderWay);
  /// All ranks start their parts in this order of buckets. O(parts).
  PartOrder(const SwitchMessages &plan, const std::vector<int> &order,
            int ranks, int64_t bytesUnderWay);

  /// By part: the part that its rank starts before it and after it.
  std::vector<int> before, after;
  /// By part: the last part of its rank that must have ended before it begins, so that
  /// the bytes under way stay within the limit.
  std::vector<int> room;
  std::vector<int> first; ///< first part of each rank

private:
  /// Parts `oldest` to `last` of a rank are under way.
  struct UnderWay {
    int oldest = none, last = none, ended = none;
    int64_t bytes = 0;
  };
  PartOrder(size_t parts, size_t ranks);
  void add(const SwitchMessages &plan, int part, int64_t limit);

  std::vector<UnderWay> underWay_; ///< by rank
};

/// The time in which a port moved the messages of one part.
struct PortTime {
  int part;
  Port port;
  int64_t bytes;
  TaskTime time;
};

/// Returns the ports that a message uses: its sender's and its receiver's.
inline std::pair<Port, Port> portsOf(const SwitchNetwork &network,
                                     const SwitchMessages::Message &message) {
  return network.nodeOf(message.from) == network.nodeOf(message.to)
             ? std::pair(Port::InsideOut, Port::InsideIn)
             : std::pair(Port::NetworkOut, Port::NetworkIn);
}

/// Simulates the buckets of a switch in an order in which each one comes after the bucket
/// that it names. A rank waits for its parts in these buckets before it starts a part.
class BucketTimes {
public:
  /// The arguments must outlive this object. O(messages + parts + buckets * ranks).
  BucketTimes(const SwitchMessages &plan, const std::vector<int> &order,
              const SwitchNetwork &network, Fusing fusing,
              int64_t bytesUnderWay);

  /// Returns when the last rank has everything.
  double seconds() const { return seconds_; }
  double beginOf(int part) const { return begin_[part]; }
  double endOf(int part) const { return end_[part]; }
  const PartOrder &parts() const { return order_; }

private:
  /// A port in the bucket that is computed.
  struct Use {
    double load = 0;
    /// When the first and the last of its messages can move.
    double first = std::numeric_limits<double>::infinity(), last = 0;
    int transfers = 0;
  };
  /// A message on one of its ports.
  struct Arrival {
    size_t port;
    double time, load;
    bool operator<(const Arrival &other) const {
      return port != other.port ? port < other.port : time < other.time;
    }
  };

  void simulate(const std::vector<int> &order);
  void begin(int bucket);
  void compute(int bucket);
  void addLoads(const SwitchMessages::Message *begin,
                const SwitchMessages::Message *end);
  void moveGaps(const SwitchMessages::Message *begin,
                const SwitchMessages::Message *end);
  bool isInside(const SwitchMessages::Message &message) const {
    return node_[message.from] == node_[message.to];
  }
  /// Returns the index of a port in `uses_` and `clock_`.
  size_t portOf(bool isInside, bool isIn, int rank) const {
    return static_cast<size_t>(2 * isInside + isIn) * ranks_ +
           static_cast<size_t>(rank);
  }
  double latencyOf(size_t port) const { return latency_[port >= 2 * ranks_]; }
  double now(const SwitchMessages::Message &message) const {
    return std::max(rankBegin_[message.from], rankBegin_[message.to]);
  }

  const SwitchMessages &plan_;
  const size_t ranks_;
  const bool isFused_;
  const PartOrder order_;
  double seconds_ = 0;
  double secondsPerByte_[2], latency_[2]; ///< between nodes, inside
  std::vector<int> node_;                 ///< of each rank
  std::vector<double> now_;               ///< when each rank goes on
  /// By bucket and rank, the end of its part, for buckets that others come after.
  std::vector<std::vector<double>> arrived_;
  std::vector<double> begin_, end_;
  std::vector<double>
      ended_; ///< by part: end of all parts of its rank up to it
  std::vector<double> clock_; ///< by port: end of its last bucket
  // State of the bucket that is being computed:
  std::vector<double> rankBegin_, rankEnd_;
  std::vector<Use> uses_;
  std::vector<size_t> ports_;
  std::vector<Arrival> arrivals_;
};

} // namespace dyna

#endif // DYNA_RUNTIME_SIM_BUCKETTIMES_H
